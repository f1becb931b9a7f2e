/*
 * What is larger than a command: topics of the help.
 *
 * A topic is a text in which each line is a paragraph; one that begins with two blanks stands as it
 * is, and one with a tab is a row of a list. The manual page has the same texts.
 */
#include <string.h>

#include "opt.h"

static const char ask[] =
    "`diagnose LOG` answers from rules and past incidents alone. Where those know nothing, or are "
    "less sure than `ask_below`, it can put the log's page to a language model: any server that "
    "speaks OpenAI's chat completions. It is asked after the answer of the rules is complete. What "
    "it cites is looked up in the log; without one line that is there and shows a failure its "
    "answer is an opinion and changes nothing. When it is down or slow, the rules' answer stands.\n"
    "\n"
    "Name the endpoints in ~/.config/faultline/config.yaml, in the order of asking. A key stands "
    "in "
    "a file or in the environment, never here.\n"
    "\n"
    "GPT-4 and its followers:\n"
    "  llm:\n"
    "    endpoints:\n"
    "      - url: https://api.openai.com/v1\n"
    "        model: gpt-4.1\n"
    "        api_key_env: OPENAI_API_KEY\n"
    "\n"
    "Azure, where the deployment stands in the URL:\n"
    "      - url: https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT\n"
    "        api_version: 2024-10-21\n"
    "        api_key_file: ~/.config/faultline/azure.key\n"
    "\n"
    "vLLM, after `vllm serve Qwen/Qwen2.5-32B-Instruct --max-model-len 16384`:\n"
    "      - url: http://127.0.0.1:8000/v1\n"
    "        model: Qwen/Qwen2.5-32B-Instruct\n"
    "        context: 16384\n"
    "\n"
    "llama.cpp, after `llama-server -m model.gguf -c 16384 --port 8080`:\n"
    "      - url: http://127.0.0.1:8080/v1\n"
    "        model: any\n"
    "        context: 16384\n"
    "\n"
    "Ollama, after `ollama pull qwen2.5:14b`; it forgets what is beyond num_ctx, so give it 16384 "
    "in its Modelfile or by OLLAMA_CONTEXT_LENGTH:\n"
    "      - url: http://127.0.0.1:11434/v1\n"
    "        model: qwen2.5:14b\n"
    "        context: 16384\n"
    "\n"
    "Keys of an endpoint\n"
    "url\tup to and with /v1\n"
    "model\tits name there\n"
    "api_key_env, api_key_file\twhere the key is; none is sent without\n"
    "timeout, connect_timeout\tseconds of one request (120) and of connecting (10)\n"
    "max_tokens\tof an answer (2000)\n"
    "context\ttokens of prompt and answer together; the page is made smaller to fit\n"
    "extra_headers\ta map of names and values, all of them kept secret\n"
    "ca_file, proxy\ta private CA as PEM; a proxy (else the environment's)\n"
    "price_in, price_out\tof a million tokens; the answer then tells its cost\n"
    "\n"
    "Keys of llm\n"
    "ask_below\tanswers of the rules at or above it never leave the machine (0.8)\n"
    "votes\tso many answers are asked for and compared; a disagreement decides nothing (1)\n"
    "redact\tfalse: endpoints on this machine, and those listed in plain_to, get the text as it "
    "is\n"
    "plain_to\tURLs that may get it so\n"
    "redact_patterns\tregular expressions of what else is secret\n"
    "\n"
    "A prompt has at most 6,000 tokens. See what it holds, and whether the endpoint will do:\n"
    "  diagnose prompt job.log | less\n"
    "  diagnose doctor\n"
    "  diagnose --ask job.log\n"
    "  diagnose -i job.log\n";

static const char embedding[] =
    "Past incidents are looked up by words and by vectors. A small model that comes with the "
    "program "
    "makes the vectors, without a network. An endpoint that speaks OpenAI's /v1/embeddings can "
    "make "
    "a second set; a search then joins all three lists. It is asked by `diagnose reindex` for all "
    "incidents and by a search for the lines of the job, redacted and without numbers, times and "
    "paths.\n"
    "\n"
    "  memory:\n"
    "    embedding:\n"
    "      url: http://127.0.0.1:8081/v1\n"
    "      model: multilingual-e5-small\n"
    "\n"
    "The keys are those of an endpoint of `diagnose help ask`. Vectors are kept under the model's "
    "name. After it has been named, or changed, run `diagnose reindex`; until then, and whenever "
    "the endpoint is down, slow or answers with other vectors than before, the local model is "
    "searched alone and one sentence says so. A search waits 15 seconds for it at most.\n"
    "\n"
    "Whether it is worth it can be measured:\n"
    "  diagnose eval --search tests/cases\n"
    "\n"
    "Servers that fit: llama.cpp (`llama-server --embeddings`), vLLM (`vllm serve MODEL --task "
    "embed`), Ollama, text-embeddings-inference, OpenAI.\n";

const struct cli_topic cli_topics[] = {
    {"ask", "how to ask a language model: GPT-4, vLLM, llama.cpp, Ollama", ask},
    {"embedding", "how to let an endpoint make vectors of past incidents", embedding},
    {NULL, NULL, NULL},
};

const struct cli_topic *cli_topic_find(const char *name)
{
    for (const struct cli_topic *t = cli_topics; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}
