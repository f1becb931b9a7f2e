#!/usr/bin/env python3
"""Writes the healthy logs beside this file: jobs that ended well, in which a search finds nothing.

Each log is what one framework prints on a good day, and a good day is full of warnings: optional
libraries that are absent, peers that listen a second later, downloads that are tried again, a loss
scale that is searched for, an upload that stalls. All of it was survived, and each job says at its
end that it is done. A past incident that a search finds in one of these was found by its clothes.

Everything here is made up; hosts, addresses and numbers are of no real machine. The seeds are
fixed: running this again writes the same bytes. --compare writes nothing and fails when a file is
not what it would write.
"""
import datetime
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Log:
    """Lines, a clock that goes on, and a loss that falls."""

    def __init__(self, seed, start="2026-03-05 01:10:02"):
        self.r = random.Random(seed)
        self.now = datetime.datetime.fromisoformat(start)
        self.lines = []

    def say(self, *texts):
        self.lines.extend(texts)

    def wait(self, seconds):
        self.now += datetime.timedelta(seconds=seconds * self.r.uniform(0.98, 1.02))

    def stamp(self, form="%Y-%m-%d %H:%M:%S"):
        return self.now.strftime(form)

    def ms(self):
        return self.stamp("%Y-%m-%d %H:%M:%S,") + "%03d" % (self.now.microsecond // 1000)

    def loss(self, step, top=10.4, floor=2.1, pace=60.0):
        return floor + (top - floor) * math.exp(-step / pace) + self.r.gauss(0, 0.015)

    def norm(self, step):
        return 0.4 + 4.0 * math.exp(-step / 40.0) + abs(self.r.gauss(0, 0.05))


def torchrun(log, prefix=""):
    log.say("W%s 4100 site-packages/torch/distributed/run.py:793] " % log.stamp("%m%d %H:%M:%S.%f"),
            "*****************************************",
            "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to "
            "avoid your system being overloaded, please further tune the variable for optimal "
            "performance in your application as needed. ",
            "*****************************************",
            prefix + "[W%s socket.cpp:697] [c10d] The client socket cannot be initialized to connect"
            " to [gn21]:29500 (errno: 97 - Address family not supported by protocol)."
            % log.stamp("%m%d %H:%M:%S.%f"))


def nccl(log, host, ranks, nodes=1, ib=True):
    for rank in range(ranks):
        head = "%s:%d:%d [%d] NCCL INFO " % (host, 7100 + rank, 7100 + rank, rank)
        log.say(head + "Bootstrap: Using eth0:10.12.4.21<0>",
                head + "NET/Plugin: No plugin found (libnccl-net.so)",
                head + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.12.4.21<0>"
                if ib else head + "NET/IB : No device found.",
                head + "NCCL_IB_TIMEOUT set by environment to 22.",
                head + "Using network " + ("IB" if ib else "Socket"))
    for rank in range(ranks):
        head = "%s:%d:%d [%d] NCCL INFO " % (host, 7100 + rank, 7300 + rank, rank)
        if log.r.random() < 0.4:
            log.say(head + "Call to connect returned Connection refused, retrying")
        log.say(head + "Setting affinity for GPU %d to ffff" % rank,
                head + "NVLS multicast support is not available on dev %d" % rank,
                head + "Connected all rings", head + "Connected all trees",
                head + "comm 0x55d1f0c3a2b0 rank %d nranks %d cudaDev %d busId %x000 commId 0x9f2c"
                " - Init COMPLETE" % (rank, ranks * nodes, rank, 0x1b + 16 * rank))


def goodbye(log, prefix=""):
    log.say(prefix + "[W%s ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was "
            "not called before program exit, which can leak resources. For more info, please see "
            "https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())"
            % log.stamp("%m%d %H:%M:%S.%f"))


def megatron():
    log = Log(1)
    torchrun(log)
    log.say("using world size: 16, data-parallel size: 4, context-parallel size: 1, hierarchical "
            "context-parallel sizes: None, tensor-model-parallel size: 4, pipeline-model-parallel "
            "size: 1", "------------------------ arguments ------------------------",
            "  check_for_nan_in_loss_and_grad .................. True",
            "  distributed_timeout_minutes ..................... 10",
            "  error_injection_rate ............................ 0",
            "  exit_on_missing_checkpoint ...................... False",
            "-------------------- end of arguments ---------------------",
            "> initializing torch distributed ...",
            "> initialized tensor model parallel with size 4")
    nccl(log, "gn21", 4, 4)
    log.say("WARNING: could not find the metadata file /ckpt/g1/latest_checkpointed_iteration.txt",
            "    will not load any checkpoints and will start from random",
            "[after dataloaders are built] datetime: %s " % log.stamp(), "done with setup ...",
            "training ...", "/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py:824: "
            "UserWarning: c10d::broadcast_: an autograd kernel was not registered to the Autograd "
            "key(s) but we are trying to backprop through it. This may lead to silently incorrect "
            "behavior. (Triggered internally at autograd_not_implemented_fallback.cpp:62.)")
    for step in range(10, 901, 10):
        ms = 4100 + abs(log.r.gauss(0, 25)) + (9000 if step == 10 else 0)
        log.wait(ms / 100)
        log.say(" [%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms)"
                ": %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global "
                "batch size:   512 | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of "
                "skipped iterations:   0 | number of nan iterations:   0 |"
                % (log.stamp("%Y-%m-%d %H:%M:%S.%f"), step, 900, step * 512, ms, 1.63e6 / ms,
                   3e-4 * min(1, step / 100), log.loss(step), log.norm(step)))
        if step % 300 == 0:
            log.say("saving checkpoint at iteration %7d to /ckpt/g1 in torch_dist format" % step)
            log.wait(40)
            log.say("  successfully saved checkpoint from iteration %7d to /ckpt/g1 "
                    "[ t 1/4, p 1/1 ]" % step, "-" * 60,
                    " validation loss at iteration %d | lm loss value: %.6E | lm loss PPL: %.6E | "
                    % (step, log.loss(step), math.exp(log.loss(step))), "-" * 60)
        if step == 450:
            log.say("wandb: Network error (ReadTimeout), entering retry loop.",
                    "wandb: Network error resolved after 0:00:41.220912, resuming normal operation.")
    log.say("[after training is done] datetime: %s " % log.stamp())
    goodbye(log, "[rank0]:")
    return log


def neox_fp16():
    log = Log(2)
    log.say("[%s] [WARNING] [runner.py:196:fetch_hostfile] Unable to find hostfile, will proceed "
            "with training with local resources only." % log.ms(),
            "[%s] [INFO] [runner.py:555:main] cmd = /usr/bin/python -u -m deepspeed.launcher.launch "
            "--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgM119 train.py" % log.ms(),
            "[%s] [INFO] [launch.py:145:main] WORLD INFO DICT: {'localhost': [0, 1, 2, 3]}" % log.ms(),
            " [WARNING]  async_io requires the dev libaio .so object and headers but these were not "
            "found.", " [WARNING]  please install triton==1.0.0 if you want to use sparse attention",
            "> building train, validation, and test datasets ...",
            " > WARNING: could not find index map files, building the indices on rank 0 ...",
            "    reading sizes...", "    creating numpy buffer of mmap...",
            "[%s] [WARNING] [engine.py:2581:load_checkpoint] Unable to find latest file at "
            "/ckpt/neox/latest, if trying to load latest checkpoint please ensure this file exists "
            "or pass an explicit checkpoint tag when loading a checkpoint." % log.ms())
    scale = 65536.0
    for step in range(1, 9):
        log.wait(3)
        log.say("[%s] [INFO] [fused_optimizer.py:380:_update_scale] [deepspeed] OVERFLOW! Rank 0 "
                "Skipping step. Attempted loss scale: %d, reducing to %d"
                % (log.ms(), scale, scale / 2))
        scale /= 2
    for step in range(10, 1301, 10):
        log.wait(32)
        log.say(" samples/sec: %.3f | iteration %8d/    1300 | elapsed time per iteration (ms): %.1f"
                " | learning rate: %.3E | approx flops per GPU: 96.1TFLOPS | lm_loss: %.6E | loss "
                "scale: %.1f | number of skipped iterations: %3d | number of nan iterations:   0 |"
                % (80 + log.r.gauss(0, 0.4), step, 3200 + log.r.gauss(0, 15), 6e-4 * min(1, step / 90),
                   log.loss(step, pace=160), scale, 8 if step == 10 else 0))
        if step % 400 == 0:
            log.say("[%s] [INFO] [logging.py:96:log_dist] [Rank 0] Saving model checkpoint: /ckpt/"
                    "neox/global_step%d/mp_rank_00_model_states.pt" % (log.ms(), step))
            log.wait(20)
            log.say("[%s] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saved /ckpt/neox/"
                    "global_step%d/mp_rank_00_model_states.pt." % (log.ms(), step))
        if step % 500 == 0:
            scale *= 2
    for pid in range(5210, 5214):
        log.say("[%s] [INFO] [launch.py:347:main] Process %d exits successfully." % (log.ms(), pid))
    return log


def hf_trainer():
    log = Log(3)
    log.say("'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed "
            "out. (read timeout=10)\"), '(Request ID: 5b01)')' thrown while requesting HEAD "
            "https://huggingface.co/acme/base-8b/resolve/main/config.json",
            "Retrying in 1s [Retry 1/5].")
    for i in range(1, 5):
        log.say("Loading checkpoint shards: %3d%%|%s| %d/4 [00:%02d<00:00,  2.1s/it]"
                % (25 * i, "#" * (3 * i) + " " * (12 - 3 * i), i, 2 * i))
    log.say("Some weights of LlamaForSequenceClassification were not initialized from the model "
            "checkpoint at acme/base-8b and are newly initialized: ['score.weight']",
            "You should probably TRAIN this model on a down-stream task to be able to use it for "
            "predictions and inference.",
            "Token indices sequence length is longer than the specified maximum sequence length for "
            "this model (5120 > 4096). Running this sequence through the model will result in "
            "indexing errors",
            "Map (num_proc=16): 100%|##########| 41600/41600 [00:31<00:00, 1644.12 examples/s]",
            "[INFO|trainer.py:2241] %s >> ***** Running training *****" % log.ms(),
            "[INFO|trainer.py:2242] %s >>   Num examples = 41,600" % log.ms(),
            "[INFO|trainer.py:2248] %s >>   Total optimization steps = 1,300" % log.ms(),
            "huggingface/tokenizers: The current process just got forked, after parallelism has "
            "already been used. Disabling parallelism to avoid deadlocks...",
            "[WARNING|logging.py:328] %s >> `use_cache=True` is incompatible with gradient "
            "checkpointing. Setting `use_cache=False`." % log.ms())
    for step in range(10, 1301, 10):
        log.wait(21)
        log.say("{'loss': %.4f, 'grad_norm': %.4f, 'learning_rate': %.4e, 'epoch': %.2f}"
                % (log.loss(step, 2.4, 0.9, 300), log.norm(step), 2e-5 * (1 - step / 1700),
                   step / 1300), " %2d%%|%s| %d/1300 [%d:%02d:%02d<0:31:07,  2.11s/it]"
                % (step / 13, "#" * (step // 130), step, step * 2.1 // 3600,
                   step * 2.1 // 60 % 60, step * 2.1 % 60))
        if step % 400 == 0:
            log.say("{'eval_loss': %.4f, 'eval_runtime': %.2f, 'eval_samples_per_second': 88.1, "
                    "'eval_steps_per_second': 2.75, 'epoch': %.2f}"
                    % (log.loss(step, 2.4, 1.0, 300), 22 + log.r.random(), step / 1300),
                    "[INFO|trainer.py:3820] %s >> Saving model checkpoint to /out/checkpoint-%d"
                    % (log.ms(), step))
        if step == 1200:
            log.say("[INFO|trainer.py:3912] %s >> Deleting older checkpoint [/out/checkpoint-400] "
                    "due to args.save_total_limit" % log.ms())
    log.say("{'train_runtime': 2755.4, 'train_samples_per_second': 15.098, "
            "'train_steps_per_second': 0.472, 'train_loss': 1.1121, 'epoch': 1.0}",
            "***** train metrics *****", "  epoch                    =        1.0",
            "  train_runtime            = 0:45:55.40",
            "wandb: Synced 5 W&B file(s), 0 media file(s), 2 artifact file(s) and 0 other file(s)")
    return log


def deepspeed_zero3():
    log = Log(4)
    log.say("[%s] [INFO] [real_accelerator.py:219:get_accelerator] Setting ds_accelerator to cuda "
            "(auto detect)" % log.ms(), "/usr/bin/ld: cannot find -laio: No such file or directory",
            "collect2: error: ld returned 1 exit status",
            " [WARNING]  async_io requires the dev libaio .so object and headers but these were not "
            "found.", "Using /root/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...",
            "No modifications detected for re-loaded extension module fused_adam, skipping build "
            "step...", "Time to load fused_adam op: 0.07 seconds",
            "[%s] [WARNING] [engine.py:1232:_do_optimizer_sanity_check] **** You are using ZeRO with"
            " an untested optimizer, proceed with caution *****" % log.ms())
    nccl(log, "box1", 4)
    for step in range(1, 111):
        log.wait(11)
        log.say("[%s] [INFO] [logging.py:128:log_dist] [Rank 0] step=%d, skipped=0, lr=[%.8e], "
                "mom=[(0.9, 0.95)]" % (log.ms(), step, 1e-5 * min(1, step / 20)),
                "[%s] [INFO] [timer.py:264:stop] epoch=0/micro_step=%d/global_step=%d, "
                "RunningAvgSamplesPerSec=%.4f, CurrSamplesPerSec=%.4f, MemAllocated=14.02GB, "
                "MaxMemAllocated=61.3GB" % (log.ms(), step * 4, step, 11.61, 11.6 + log.r.gauss(0, .1)))
        if step % 10 == 0:
            log.say("step %d loss %.4f" % (step, log.loss(step, 2.2, 1.2, 70)))
        if step in (31, 77):
            log.say("[%s] [WARNING] [stage3.py:2104:step] 1 pytorch allocator cache flushes since "
                    "last step. this happens when there is high memory pressure and is detrimental "
                    "to performance." % log.ms())
    log.say("[%s] [INFO] [logging.py:128:log_dist] [Rank 0] [Torch] Checkpoint global_step110 is "
            "ready now!" % log.ms())
    for pid in range(811, 815):
        log.say("[%s] [INFO] [launch.py:351:main] Process %d exits successfully." % (log.ms(), pid))
    return log


def lightning():
    log = Log(5)
    log.say("GPU available: True (cuda), used: True", "TPU available: False, using: 0 TPU cores",
            "You are using a CUDA device ('NVIDIA A100-SXM4-80GB') that has Tensor Cores. To "
            "properly utilize them, you should set `torch.set_float32_matmul_precision('medium' | "
            "'high')` which will trade-off precision for performance.")
    for rank in range(8):
        log.say("Initializing distributed: GLOBAL_RANK: %d, MEMBER: %d/8" % (rank, rank + 1))
    log.say("-" * 100, "distributed_backend=nccl",
            "All distributed processes registered. Starting with 8 processes", "-" * 100,
            "Restoring states from the checkpoint path at /results/r5/last.ckpt",
            "/opt/conda/lib/python3.10/site-packages/lightning/pytorch/trainer/connectors/"
            "data_connector.py:425: The 'train_dataloader' does not have many workers which may be a"
            " bottleneck. Consider increasing the value of the `num_workers` argument` to "
            "`num_workers=31` in the `DataLoader` to improve performance.",
            "[rank0]:[W%s reducer.cpp:1400] Warning: find_unused_parameters=True was specified in "
            "DDP constructor, but did not find any unused parameters in the forward pass. (function "
            "operator())" % log.stamp("%m%d %H:%M:%S.%f"))
    for epoch in (3, 4, 5):
        for batch in range(25, 1001, 25):
            log.wait(16)
            log.say("Epoch %d: %3d%%|%s| %d/1000 [%02d:%02d<08:12,  1.56it/s, v_num=7, train_loss="
                    "%.3f]" % (epoch, batch / 10, "#" * (batch // 100), batch, batch // 94,
                               batch * 60 // 94 % 60, log.loss(epoch * 1000 + batch, 4.0, 2.3, 2500)))
            if epoch == 4 and batch == 500:
                log.say("Exception in thread Thread-9 (push):", "Traceback (most recent call last):",
                        '  File "/usr/lib/python3.10/threading.py", line 1016, in _bootstrap_inner',
                        "    self.run()",
                        "WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None, "
                        "read=None, redirect=None, status=None)) after connection broken by "
                        "'RemoteDisconnected('Remote end closed connection without response')': "
                        "/api/metrics")
        log.say("Epoch %d, global step %d: 'val_loss' reached %.5f (best %.5f), saving model to "
                "'/results/r5/epoch=%d.ckpt' as top 1" % (epoch, epoch * 1000, 2.4 - epoch / 50,
                                                          2.4 - epoch / 50, epoch))
    log.say("`Trainer.fit` stopped: `max_epochs=6` reached.")
    goodbye(log, "[rank0]:")
    return log


def nemo():
    log = Log(6)
    say = lambda level, text: log.say("[NeMo %s %s %s" % (level, log.stamp(), text))
    for text in ("nemo_logging:361] /usr/local/lib/python3.12/dist-packages/lightning/pytorch/"
                 "_graveyard/precision.py:49: The `MixedPrecisionPlugin` is deprecated.",
                 "exp_manager:708] Exp_manager is logging to /results/n6, but it already exists.",
                 "exp_manager:630] There were no checkpoints found in checkpoint_dir or no "
                 "checkpoint folder at checkpoint_dir :/results/n6/checkpoints. Training from "
                 "scratch."):
        say("W", text)
    say("I", "megatron_init:314] Rank 0 has data parallel group : [0, 8]")
    say("I", "megatron_init:320] All tensor model parallel group ranks: [[0, 1, 2, 3, 4, 5, 6, 7]]")
    say("I", "tokenizer_utils:225] Padded vocab_size: 32256, original vocab_size: 32000, dummy "
             "tokens: 256.")
    say("W", "rerun_state_machine:1264] Implicit initialization of Rerun State Machine!")
    nccl(log, "dgx03", 2, 8)
    for step in range(0, 1200, 10):
        log.wait(52)
        log.say("Training epoch 0, iteration %d/1199 | lr: %.4g | global_batch_size: 256 | "
                "global_step: %d | reduced_train_loss: %.4g | train_step_timing in s: %.4g | "
                "consumed_samples: %d" % (step, 1e-4 * min(1, (step + 1) / 200), step,
                                          log.loss(step, pace=200), 5.2 + log.r.gauss(0, 0.03),
                                          (step + 1) * 256))
        if step and step % 400 == 0:
            say("I", "model_checkpoint:522] Scheduled async checkpoint save for /results/n6/"
                     "checkpoints/step=%d-last" % step)
            say("I", "model_checkpoint:497] Async checkpoint save for step %d (/results/n6/"
                     "checkpoints/step=%d-last) finalized successfully at %s."
                     % (step, step, log.stamp()))
            log.say("Validation: iteration 1/4", "Validation: iteration 4/4")
        if step == 800:
            log.say("Removing unfinished checkpoint: /results/n6/checkpoints/step=400-last",
                    "wandb: 429 encountered (Filestream rate limit exceeded, retrying in 2.1 "
                    "seconds.), retrying request")
    log.say("`Trainer.fit` stopped: `max_steps=1200` reached.")
    return log


def torchtitan():
    log = Log(7)
    torchrun(log, "[rank0]:")
    say = lambda text, level="INFO": log.say("[rank0]:[titan] %s - root - %s - %s"
                                             % (log.ms(), level, text))
    for text in ("Starting job: llama3 8b", "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB "
                 "memory", "Model llama3 8B size: 8,030,261,248 total parameters",
                 "Applied selective activation checkpointing to the model",
                 "Compiling each TransformerBlock with torch.compile",
                 "No checkpoint was provided, this is a fresh start.",
                 "[GC] Initial GC collection took 0.31 seconds", "Training starts at step 1"):
        say(text)
    log.say("[rank0]:W%s 4411 torch/_inductor/utils.py:1137] [0/0] Not enough SMs to use "
            "max_autotune_gemm mode" % log.stamp("%m%d %H:%M:%S.%f"))
    for step in [1] + list(range(10, 2001, 10)):
        log.wait(19)
        say("step: %2d  loss: %8.5f  grad_norm: %7.4f  memory: 52.11GiB(65.88%%)  tps: %s  tflops: "
            "%.2f  mfu: %.2f%%" % (step, log.loss(step, 12.2, 3.0, 260), log.norm(step),
                                   format(int(7600 + log.r.gauss(0, 40)), ","), 440.1, 44.5))
        if step % 500 == 0:
            say("Saving the checkpoint.")
            say("Finished saving the checkpoint in 6.41 seconds.")
            say("[GC] Performing periodic GC collection took 0.02 seconds")
        if step == 640:
            say("1 CUDA memory allocation retries.", "WARNING")
    say("Sleeping 2 seconds for other ranks to complete")
    say("Training completed")
    say("Process group destroyed")
    return log


def composer():
    log = Log(8)
    log.say("******************************", "Config:", "max_duration: 800ba",
            "autoresume: true", "******************************",
            "%s: rank0[5101][MainThread]: INFO: composer.utils.reproducibility: Setting seed to 17"
            % log.ms(),
            "%s: rank0[5101][MainThread]: INFO: composer.trainer.trainer: Looking for autoresume "
            "checkpoint: latest-rank0.pt.symlink (remote), latest-rank0.pt (local)" % log.ms(),
            "/usr/lib/python3/dist-packages/composer/callbacks/speed_monitor.py:125: UserWarning: "
            "gpu_flop count not found for nvidia h20 with precision: amp_bf16; MFU cannot be "
            "calculated and reported.",
            "WARNING: streaming.base.dataset: Because `predownload` was not specified, it will "
            "default to 8*batch_size if batch_size is not None, otherwise 64.")
    for batch in range(10, 801, 10):
        log.wait(70)
        log.say("[batch=%d/800]:" % batch, "\t Train loss/train/total: %.4f"
                % log.loss(batch, pace=150),
                "\t Train throughput/tokens_per_sec: %.4f" % (231000 + log.r.gauss(0, 900)))
        if batch % 200 == 0:
            log.say("[Eval batch=40/40] Eval on c4 data:", "\t Eval metrics/eval/"
                    "LanguageCrossEntropy: %.4f" % log.loss(batch, pace=150))
        if batch == 300:
            log.say("WARNING: urllib3.connectionpool: Connection pool is full, discarding "
                    "connection: s3.eu-central-1.amazonaws.com. Connection pool size: 10")
    log.say("Rank 0 finished successfully.", "Rank 1 finished successfully.")
    return log


def fairseq():
    log = Log(9)
    info = lambda place, text: log.say("%s | INFO | %s | %s" % (log.stamp(), place, text))
    info("fairseq_cli.train", "task: LanguageModelingTask")
    info("fairseq_cli.train", "num. shared model params: 354,871,296 (num. trained: 354,871,296)")
    info("fairseq.trainer", "No existing checkpoint found /ckpt/fs/checkpoint_last.pt")
    info("fairseq_cli.train", "training on 8 devices (GPUs/TPUs)")
    log.say("%s | WARNING | fairseq.tasks.fairseq_task | 112 samples have invalid sizes and will be "
            "skipped, max_positions=2048, first few sample ids=[11, 982, 4410]" % log.stamp(),
            "%s | INFO | torch.distributed.distributed_c10d | Rank 0: Completed store-based barrier "
            "for key:store_based_barrier_key:1 with 8 nodes." % log.stamp())
    for i, scale in enumerate((64.0, 32.0, 16.0)):
        info("fairseq.trainer", "NOTE: gradient overflow detected, ignoring gradient, setting loss "
                                "scale to: %.1f" % scale)
    for update in range(100, 14001, 100):
        log.wait(46)
        info("train_inner", "epoch %03d: %6d / 4000 loss=%.3f, ppl=%.2f, wps=%d, ups=2.17, "
                            "wpb=65536, bsz=32, num_updates=%d, lr=%.6g, gnorm=%.3f, loss_scale=16, "
                            "train_wall=46, gb_free=21.2, wall=%d"
             % (update // 4000 + 1, update % 4000, log.loss(update, 14, 4.2, 2500),
                2 ** log.loss(update, 14, 4.2, 2500), 142000 + log.r.gauss(0, 600), update,
                6e-4 * min(1, update / 2000), log.norm(update / 50), update // 2))
        if update % 4000 == 0:
            info("valid", 'epoch %03d | valid on \'valid\' subset | loss %.3f | num_updates %d'
                 % (update // 4000, log.loss(update, 14, 4.3, 2500), update))
            info("fairseq.checkpoint_utils", "Saved checkpoint /ckpt/fs/checkpoint%d.pt (epoch %d @ "
                 "%d updates, score 4.41) (writing took 9.31 seconds)"
                 % (update // 4000, update // 4000, update))
    info("fairseq_cli.train", "done training in 6530.2 seconds")
    return log


def internevo():
    log = Log(10)
    say = lambda text, level="INFO", place="train.py:114 in main": log.say(
        "%s\t%s %s -- %s" % (log.ms(), level, place, text))
    say("monitor address is none, monitor could not be used!", "WARNING", "alert.py:21 in init")
    say("===========New Run Mar05_01-10-02 on host:node-3,rank=0,tp=1,pp=1,dp=8===========")
    say("Distributed environment is initialized, data parallel size: 8, pipeline parallel size: 1, "
        "tensor parallel size: 1, weight parallel size: 1")
    for rank in range(8):
        say("process rank %d is bound to host:node-3 device: %d" % (rank, rank))
    say("alert is enable but alert_address is not set", "WARNING", "monitor.py:80 in start")
    for step in range(0, 150):
        log.wait(9)
        say("tflops=%.2f step=%d loss=%.4f tgs (tokens/gpu/second)=%.1f lr=%.3e loss_scale=65536.0 "
            "grad_norm={'0_default': %.4f} micro_num=4 num_consumed_tokens=%d inf_nan_skip_batches=0"
            " num_samples_in_batch=18 largest_length=2048 fwd_bwd_time=%.2f"
            % (181 + log.r.random(), step, log.loss(step, 11.5, 3.0, 40), 4030 + log.r.gauss(0, 12),
               4e-5 * min(1, step / 20), log.norm(step), (step + 1) * 131072, 3.9 + log.r.random() / 9),
            place="training_internlm.py:603 in record_current_batch_training_metrics")
        if step == 60:
            say("Training may be in stuck status, please check it.", "WARNING", "monitor.py:61 in run")
        if step % 50 == 49:
            say("Saving checkpoint to `local:/ckpt/ie` at batch count:%d..." % (step + 1))
            say("Step: %d, rank 0 save ckpt use 11.203 s" % step)
    say("Training finished, total steps 150")
    return log


def maxtext():
    log = Log(11)
    log.say("INFO:%s:jax._src.distributed:117: Starting JAX distributed service on [::]:8476"
            % log.ms(), "INFO:%s:jax._src.xla_bridge:925: Unable to initialize backend 'tpu': "
            "INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such "
            "file or directory" % log.ms(),
            "E0000 00:00:1772673002.120311    8812 cuda_dnn.cc:8310] Unable to register cuDNN "
            "factory: Attempting to register factory for plugin cuDNN when one has already been "
            "registered",
            "W0000 00:00:1772673002.131877    8812 computation_placer.cc:177] computation placer "
            "already registered. Please check linkage and avoid linking the same target more than "
            "once.", "System Information: Jax Version: 0.5.1", "Num_devices: 16, shape (1, 16, 1)",
            "No existing checkpoints found, not restoring checkpoint.",
            "Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to="
            "/tmp/foo and attach the results.",
            "W0305 01:14:10.220413    8999 gemm_fusion_autotuner.cc:1037] Delay kernel timed out: "
            "measured time has sub-optimal accuracy. There may be a missing warmup execution, "
            "please investigate in Nsight Systems.")
    for step in range(0, 140):
        seconds = 48.1 if step == 0 else 3.41 + log.r.gauss(0, 0.01)
        log.wait(seconds)
        log.say("completed step: %d, seconds: %.3f, TFLOP/s/device: %.3f, Tokens/s/device: %.3f, "
                "total_weights: 131072, loss: %.3f"
                % (step, seconds, 1240 / seconds, 8192 / seconds, log.loss(step, pace=45)))
        if step and step % 50 == 0:
            log.say("INFO:%s:absl:[process=0] Saving checkpoint at step %d to gs://mt-ckpt/run11"
                    % (log.ms(), step),
                    "INFO:%s:absl:Finished async_save (blocking + background). Time taken: 11.2s. "
                    "directory=gs://mt-ckpt/run11/%d" % (log.ms(), step))
    log.say("completed step: 140, seconds: 3.402, TFLOP/s/device: 364.491, Tokens/s/device: "
            "2407.9, total_weights: 131072, loss: %.3f" % log.loss(140, pace=45),
            "INFO:%s:jax._src.distributed:231: Distributed shutdown finished" % log.ms())
    return log


def verl():
    log = Log(12)
    log.say("%s\tINFO worker.py:1841 -- Started a local Ray instance. View the dashboard at "
            "http://127.0.0.1:8265" % log.ms(),
            "(WorkerDict pid=91022) Flash Attention 2.0 only supports torch.float16 and "
            "torch.bfloat16 dtypes, but the current dype in Qwen2ForCausalLM is torch.float32. You "
            "should run training or inference using Automatic Mixed-Precision",
            "(WorkerDict pid=91022) WARNING 03-05 01:12:40 [cuda.py:95] To see benefits of async "
            "output processing, enable CUDA graph. Since, enforce-eager is enabled, async output "
            "processor cannot be used",
            "(WorkerDict pid=91023) [repeated 7x across cluster] (Ray deduplicates logs by default. "
            "Set RAY_DEDUP_LOGS=0 to disable log deduplication)")
    for step in range(1, 121):
        log.wait(95)
        log.say("(TaskRunner pid=90551) step:%d - actor/kl_loss:%.4f - actor/pg_loss:%.4f - "
                "actor/grad_norm:%.4f - critic/score/mean:%.4f - response_length/mean:%.1f - "
                "timing_s/step:%.2f" % (step, 0.001 * step ** 0.5, log.r.gauss(0, 0.01),
                                        0.2 + log.r.random() / 10, 0.8 * (1 - math.exp(-step / 60)),
                                        410 + 3 * step + log.r.gauss(0, 9), 94 + log.r.random()))
        if step % 20 == 0:
            log.say("(TaskRunner pid=90551) [prompt] A program stops with ZeroDivisionError. What "
                    "should its author check first?",
                    "(TaskRunner pid=90551) [response] The divisor. Make sure that it is not zero "
                    "before the division takes place.",
                    "(TaskRunner pid=90551) [score] 1.0")
        if step == 50:
            log.say("(raylet, ip=10.2.0.14) Spilled 2113 MiB, 9 objects, write throughput 790 MiB/s."
                    " Set RAY_verbose_spill_logs=0 to disable this message.")
        if step % 40 == 0:
            log.say("(TaskRunner pid=90551) local_global_step_folder: /ckpt/grpo/global_step_%d"
                    % step)
    log.say("(TaskRunner pid=90551) Final validation metrics: {'val/test_score/gsm8k': 0.812}")
    return log


def nanogpt():
    log = Log(13)
    torchrun(log)
    log.say("tokens per iteration will be: 491,520", "Initializing a new model from scratch",
            "number of parameters: 123.59M",
            "train.py:196: FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. "
            "Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            "num decayed parameter tensors: 50, with 124,354,560 parameters", "using fused AdamW: "
            "True", "compiling the model... (takes a ~minute)",
            "[rank0]:W%s 4411 torch/_dynamo/convert_frame.py:844] [6/8] torch._dynamo hit config."
            "cache_size_limit (8)" % log.stamp("%m%d %H:%M:%S.%f"))
    for step in range(0, 2001, 10):
        log.wait(2.5)
        if step % 500 == 0:
            log.say("step %d: train loss %.4f, val loss %.4f"
                    % (step, log.loss(step, 10.9, 3.3, 350), log.loss(step, 10.9, 3.35, 350)))
            if step:
                log.say("saving checkpoint to out")
        log.say("iter %d: loss %.4f, time %.2fms, mfu %.2f%%"
                % (step, log.loss(step, 10.9, 3.3, 350), 247 + log.r.gauss(0, 2), 38.1))
        if step in (420, 1330):
            log.say("skipping bad sample %d: UnicodeDecodeError (counted, 1 of 8192)" % (step * 7))
    log.say("reached max_iters=2000, done.", "W&B not configured, metrics were kept locally")
    goodbye(log, "[rank0]:")
    return log


def slurm_bridge():
    log = Log(14)
    log.say("srun: job 2210977 queued and waiting for resources",
            "srun: job 2210977 has been allocated resources",
            "pyxis: importing docker image: nvcr.io/nvidia/nemo:25.04",
            "[INFO] Fetching image manifest", "[INFO] Extracting image layers...",
            "[INFO] Converting whiteouts...", "pyxis: imported docker image: nvcr.io/nvidia/nemo:"
            "25.04", "pyxis: completed container setup in 58112 ms",
            "srun: Job 2210977 step creation temporarily disabled, retrying (Requested nodes are "
            "busy)", "srun: Step created for StepId=2210977.1",
            "/etc/slurm/prolog.d/stats.sh: line 5: /run/gpustat/0: Permission denied")
    for rank in range(16):
        log.say("%2d: Warning: Permanently added 'gpu-b%02d' (ED25519) to the list of known hosts."
                % (rank, 20 + rank // 8) if rank % 8 == 0 else
                "%2d: Apex is not installed. Falling back to Torch Norm" % rank)
    log.say(" 0: loading distributed checkpoint from /ckpt/b14 at iteration 4000",
            " 0:  successfully loaded checkpoint from /ckpt/b14 [ t 1/8, p 1/2 ] at iteration 4000")
    for step in range(4010, 5201, 10):
        ms = 6020 + log.r.gauss(0, 22)
        log.wait(ms / 100)
        log.say("15:  [%s] iteration %8d/    5200 | consumed samples: %12d | elapsed time per "
                "iteration (ms): %.1f | learning rate: %.6E | global batch size:  1024 | lm loss: "
                "%.6E | loss scale: 1.0 | grad norm: %.3f | max attention logit: %.3f | number of "
                "skipped iterations:   0 | number of nan iterations:   0 |"
                % (log.stamp(), step, step * 1024, ms, 1.2e-4 * (1 - step / 9000),
                   log.loss(step, 10.4, 1.9, 900), 0.3 + log.r.random() / 20,
                   11 + log.r.random()))
        if step % 600 == 0:
            log.say(" 0:   [%s] scheduled an async checkpoint save at iteration %7d to /ckpt/b14"
                    % (log.stamp(), step),
                    " 0:   [%s] successfully saved checkpoint from iteration %7d to /ckpt/b14 "
                    "[ t 1/8, p 1/2 ]" % (log.stamp(), step))
        if step == 4600:
            log.say("slurmstepd: StepId=2210977.1 hit memory limit at least once during execution. "
                    "This may or may not result in some failure.",
                    " 8: gpu-b21:4411:4590 [0] transport/net_ib.cc:120 NCCL WARN NET/IB : mlx5_2:1 "
                    "Got async event : client reregistration")
    log.say(" 0: [after training is done] datetime: %s " % log.stamp())
    for rank in (3, 9):
        log.say("%2d: gpu-b2%d:4411:9021 [%d] NCCL INFO comm 0x55d1f0c3a2b0 rank %d nranks 16 "
                "cudaDev %d busId 9b000 - Destroy COMPLETE" % (rank, rank // 8, rank % 8, rank,
                                                               rank % 8))
    return log


LOGS = {"megatron": megatron, "neox-fp16": neox_fp16, "hf-trainer": hf_trainer,
        "deepspeed-zero3": deepspeed_zero3, "lightning": lightning, "nemo": nemo,
        "torchtitan": torchtitan, "composer": composer, "fairseq": fairseq, "internevo": internevo,
        "maxtext": maxtext, "verl-ray": verl, "nanogpt": nanogpt, "slurm-bridge": slurm_bridge}


def main():
    stale = 0
    for name, make in LOGS.items():
        path = os.path.join(HERE, name + ".log")
        text = ("\n".join(make().lines) + "\n").encode()
        if "--compare" in sys.argv:
            old = open(path, "rb").read() if os.path.exists(path) else b""
            if old != text:
                print("%s is not what %s writes" % (path, sys.argv[0]))
                stale = 1
        else:
            with open(path, "wb") as out:
                out.write(text)
    return stale


if __name__ == "__main__":
    sys.exit(main())
