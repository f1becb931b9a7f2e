"""What a large job prints while nothing is wrong with it: a Megatron-like pre-training run under
`srun -l`, so that every task's lines carry its number in front.

Several writers share the log: the batch script, the framework's rank 0 and last rank (arguments,
checkpoint notices, metric lines), NCCL and PyTorch in every rank, a health check of the site. The
amounts are those of real runs: most of a large log is one line a rank a step.

The lines of a step come from a few blocks that are made once, with step and time put in.
Formatting three million lines one by one took most of a minute, this takes a second.
"""

DAY = 14  # the job's first day is 2026-03-14; its clock starts at one in the morning
BLOCKS = 12
SECONDS_A_STEP = 3.1


def label(rank, text):
    return "%4d: %s\n" % (rank, text)


def host(rank):
    return "gn%04d" % (rank // 8)


def clock(t):
    """(day of March, hour, minute, seconds) at t seconds after the start; the month goes on."""
    t += 3600
    return DAY + int(t // 86400), int(t // 3600 % 24), int(t // 60 % 60), t % 60


def stamp(t):
    return "2026-03-%02d %02d:%02d:%06.3f" % clock(t)


ARGUMENTS = {
    "adam_beta1": 0.9, "adam_beta2": 0.95, "add_bias_linear": False, "bf16": True,
    "clip_grad": 1.0, "data_path": "/data/mix-v7/tokens_text_document", "dist_ckpt_format":
    "torch_dist", "distributed_backend": "nccl", "distributed_timeout_minutes": 10,
    "eval_interval": 500, "exit_on_missing_checkpoint": False, "ffn_hidden_size": 49152,
    "global_batch_size": 4096, "hidden_size": 12288, "init_method_std": 0.006, "log_interval": 1,
    "lr": 0.0003, "lr_decay_style": "cosine", "max_position_embeddings": 8192,
    "micro_batch_size": 1, "num_attention_heads": 96, "num_layers": 96, "num_workers": 2,
    "overlap_grad_reduce": True, "pipeline_model_parallel_size": 16, "save": "/ckpt/gpt-175b",
    "save_interval": 250, "seed": 1234, "seq_length": 8192, "tensor_model_parallel_size": 8,
    "train_iters": 100000, "use_distributed_optimizer": True, "weight_decay": 0.1,
}


def head(ranks):
    """The batch script and rank 0, before NCCL starts."""
    nodes = max(1, ranks // 8)
    out = ["+ date\nSat Mar 14 01:00:00 UTC 2026\n"
           "+ export NCCL_DEBUG=INFO\n+ srun -l --kill-on-bad-exit=1 -N %d -n %d python -u "
           "/workspace/train/pretrain_gpt.py --config /workspace/train/gpt-175b.yaml\n"
           % (nodes, ranks)]
    zero = ["using world size: %d, data-parallel size: %d, context-parallel size: 1, "
            "tensor-model-parallel size: 8, pipeline-model-parallel size: 16"
            % (ranks, max(1, ranks // 128)),
            "using torch.bfloat16 for parameters ...",
            "------------------------ arguments ------------------------"]
    zero += ["  %s %s %s" % (k, "." * (47 - len(k)), v) for k, v in sorted(ARGUMENTS.items())]
    zero += ["  world_size ...................................... %d" % ranks,
             "-------------------- end of arguments ---------------------",
             "torch 2.7.0+cu128, CUDA 12.8, cuDNN 9.7.1, NCCL version 2.26.2+cuda12.8",
             "> building GPT2BPETokenizer tokenizer ...",
             " > padded vocab (size: 50257) with 943 dummy tokens (new size: 51200)",
             "> initializing torch distributed ...",
             "> compiling dataset index builder ...",
             ">>> done with dataset index builder. Compilation time: 0.083 seconds"]
    return "".join(out + [label(0, x) for x in zero])


def nccl(r, rank, ranks):
    """What NCCL says at INFO in one rank while it connects."""
    local, pid = rank % 8, 20000 + rank % 8 * 3
    front = "%s:%d:%d [%d] NCCL INFO " % (host(rank), pid, pid + 411, local)
    said = ["cudaDriverVersion 12080",
            "NCCL_IB_HCA set to mlx5_0,mlx5_1,mlx5_2,mlx5_3",
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB bond0:10.%d.%d.7<0>"
            % (rank // 2048, rank // 8 % 256),
            "Using network IB", "NCCL_NVLS_ENABLE set by environment to 0.",
            "Setting affinity for GPU %d to ffff,ffffffff" % local]
    said += ["Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA"
             % (c, rank, local, (rank + 8) % ranks, local, c % 4) for c in range(0, 16, 2)]
    said += ["Connected all rings", "Connected all trees",
             "threadThresholds 8/8/64 | %d/8/64 | 512 | 512" % (ranks * 8),
             "comm 0x%012x rank %d nranks %d cudaDev %d busId %x000 commId 0x7f3c19a2bb04d5e1 - "
             "Init COMPLETE" % (r.randrange(1 << 47), rank, ranks, local, 16 + local * 17)]
    return [front + s for s in said]


def first_words(r, rank, ranks):
    """What one rank prints before the first step."""
    out = nccl(r, rank, ranks)
    if rank // 128 == 0:
        out.append(" > number of parameters on (tensor, pipeline) model parallel rank (%d, %d): %d"
                   % (rank % 8, rank // 8 % 16, 1328947200))
    if r.randrange(8) == 0:
        out.append("/opt/venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py:2059: "
                   "UserWarning: TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are "
                   "included for compilation.")
    return out


def start_up(r, ranks):
    out = [[label(rank, x) for x in first_words(r, rank, ranks)] for rank in range(ranks)]
    last = ["> building train, validation, and test datasets ...",
            " > finished creating GPT datasets ...",
            "[after dataloaders are built] datetime: 2026-03-14 01:00:00 ",
            "training ...",
            "[before the start of training step] datetime: 2026-03-14 01:00:00 "]
    mixed = []
    for at in range(0, ranks, 64):  # neighbours start together, and their lines interleave
        group = out[at:at + 64]
        while group:
            pick = r.randrange(len(group))
            mixed += group[pick][:3]
            del group[pick][:3]
            if not group[pick]:
                del group[pick]
    return (head(ranks) + "".join(mixed) + "".join(label(0, x) for x in last)).encode()


def step_line(r, mark=""):
    return "%sstep @STEP@ fwd %6.1f ms bwd %6.1f ms comm %6.1f ms opt %5.1f ms data %4.1f ms mem " \
        "%.2f GiB" % (mark, 310 + r.random() * 9, 640 + r.random() * 20, 88 + r.random() * 30,
                      31 + r.random() * 2, r.random() * 3, 61 + r.random())


HARMLESS = (
    "/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:1399: FutureWarning: "
    "`torch.cpu.amp.autocast(args...)` is deprecated.",
    "[@TIME@] [WARNING] [stage3.py:2114:step] 1 pytorch allocator cache flushes since last step.",
    "WARNING:megatron.core.utils:fused kernel for this shape is not built, using the default",
    "[@TIME@] INFO dataloader: shard %d exhausted, opening the next one",
    "[@TIME@] INFO prefetch queue at %d %% of its depth",
    "nvidia-smi: GPU %d at 68 C, 612 W, clocks 1755 MHz",
)


def harmless(r):
    text = r.choice(HARMLESS)
    return text % r.randrange(8, 1000) if "%d" in text else text


def step_block(r, ranks, rate=200):
    """The lines of all ranks for one step, with @STEP@ and @TIME@ to be put in."""
    out = []
    for rank in range(ranks):
        if r.randrange(rate) == 0:
            out.append(label(rank, harmless(r)))
        out.append(label(rank, step_line(r)))
    r.shuffle(out)
    return "".join(out).encode()


def put_in(block, step):
    return block.replace(b"@STEP@", b"%6d" % step).replace(
        b"@TIME@", stamp(step * SECONDS_A_STEP).encode())


def loss_at(r, step):
    return 2.4 + 8.0 / (1 + step * 0.02) + r.uniform(-0.02, 0.02)


def metric_text(r, step, loss=None, norm=None):
    return " [%s] iteration %8d/  100000 | consumed samples: %12d | elapsed time per iteration " \
        "(ms): %.1f | learning rate: 3.000000E-04 | global batch size:  4096 | lm loss: %.6E | " \
        "loss scale: 1.0 | grad norm: %.3f | number of skipped iterations:   0 | number of nan " \
        "iterations:   0 |" % (stamp(step * SECONDS_A_STEP), step, step * 4096,
                               3100 + r.random() * 20,
                               loss_at(r, step) if loss is None else loss,
                               0.3 + r.random() / 5 if norm is None else norm)


def now_and_then(r, ranks, step):
    """What some steps bring: timers, a checkpoint, an evaluation, the site's health check."""
    out = []
    if step % 20 == 0:
        out.append(label(ranks - 1, "(min, max) time across ranks (ms):"))
        for name, ms in (("forward-backward", 2890), ("layernorm-grads-all-reduce", 0.1),
                         ("grads-reduce-scatter", 96), ("optimizer", 33)):
            out.append(label(ranks - 1, "    %s %s: (%.2f, %.2f)"
                             % (name, "." * (46 - len(name)), ms, ms * (1 + r.random() / 20))))
    if step % 250 == 0:
        out.append(label(0, "saving checkpoint at iteration %7d to /ckpt/gpt-175b in torch_dist "
                         "format" % step))
        out += [label(rank, "INFO:megatron.core.dist_checkpointing.strategies.filesystem_async:rank"
                      ": %d, write(async) time: %.4f" % (rank, 2 + r.random()))
                for rank in range(0, ranks, 8)]
        out.append(label(0, "  successfully saved checkpoint from iteration %7d to /ckpt/gpt-175b"
                         % step))
    if step % 500 == 0:
        text = " validation loss at iteration %d | lm loss value: %.6E | lm loss PPL: %.6E | " % (
            step, loss_at(r, step) + 0.05, 2.718281828 ** (loss_at(r, step) + 0.05))
        out += [label(ranks - 1, x) for x in ("-" * len(text), text, "-" * len(text))]
    if step % 100 == 50:
        out.append("healthcheck: %s: 8 of 8 GPUs answer, 4 of 4 IB links up, /ckpt writable\n"
                   % host(r.randrange(ranks)))
    return "".join(out)
