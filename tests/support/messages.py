"""The field's message forms (tests/cases/messages.tsv), filled with seeded values.

A template is text with holes: `{name}` a value, `{a|b}` one of these (an empty one: may be absent; holes nest), `\\n` a line
break, `\\{` a brace. Each hole is drawn by its name (VALUES), anew each time.
"""
import collections
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parents[1] / "cases" / "messages.tsv"
ROLES = ("primary", "secondary", "teardown", "noise", "context")

Message = collections.namedtuple("Message", "number fault role component template")


def read(path=TABLE):
    """Every row; number is the line in the table."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        fault, role, component, template = line.split("\t")
        if role not in ROLES:
            raise ValueError(f"{path.name}:{number}: unknown role {role}")
        rows.append(Message(number, fault, role, component, template))
    return rows


def number(low, high):
    return lambda rng: str(rng.randint(low, high))


def words(*values):
    return lambda rng: rng.choice(values)


def digits(form):
    """`#` becomes a decimal digit, `@` a hexadecimal one."""
    return lambda rng: re.sub("[#@]", lambda m: rng.choice("0123456789" if m[0] == "#" else "0123456789abcdef"), form)


def names(text, value):
    return {name: value for name in text.split()}


HOST = words("node-3", "gpu017", "ip-10-0-3-17", "worker-2.cluster.local")
DEVICE = words("cuda:0", "cuda:1", "cuda:5", "cpu")
GPU = words("cuda:0", "cuda:3", "cuda:7")
DTYPE = words("torch.float16", "torch.bfloat16", "torch.float32")
SCALAR = words("Half", "Float", "BFloat16", "Long", "Double")
SHAPE = words("torch.Size([32000, 4096])", "torch.Size([4096])", "torch.Size([151936, 1024])")
EXCEPTION = words("RuntimeError", "ValueError", "KeyError", "AssertionError")
SIGNAL = words("SIGTERM", "SIGKILL", "SIGABRT", "SIGSEGV")
PARAMETER = words("layers.3.mlp.down_proj.weight", "model.embed_tokens.weight", "lm_head.bias")
STAMP = words("2026-03-01T02:11:09", "2026-11-30T23:59:58")
STAMP_MS = words("2026-03-01 02:11:09,123", "2026-11-30 23:59:58,004")
PATH = words("/data/run7/part-00012.bin", "/scratch/u1/ckpt/global_step500", "/opt/train/model.py")
COMMAND = words("['/usr/bin/python3', '-u', 'train.py', '--local_rank=3']", "python train.py --epochs 3")
SENTENCE = words("a view of a leaf was changed in place", "the argument is out of its range", "no such entry")
NCCL_REASON = words("NCCL error: remote process exited or there was a network error, NCCL version 2.18.1",
                    "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
                    "Timeout(ms)=600000) ran for 600060 milliseconds before timing out.")
WORK = words("WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=1800000)", "WorkNCCL(OpType=BROADCAST, Timeout(ms)=600000)")
STORE_ERROR = words("Connection reset by peer", "wait timeout after 600000ms, keys: /default_pg/0//cuda//0/0", "Socket Timeout")
HEALTHY = words("step 120 loss 2.31", "loading shard 3 of 8", "saved the state")
FINGERPRINT = words("CollectiveFingerPrint(SequenceNumber=12, OpType=ALLREDUCE, TensorShape=[4, 8], TensorDtypes=Float, TensorDeviceTypes="
                    "TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), requires_grad=false (default), "
                    "pinned_memory=false (default), memory_format=(nullopt)))", "CollectiveFingerPrint(SequenceNumber=3, OpType=BARRIER)")

VALUES = {
    # numbers
    **names("a b c d e g i j k l m n o r s t v w s2 small small_b step_n grank rank rank_a rank_b root suspect lr "
            "local_rank nr gid index started next hash", number(1, 9)),
    **names("zero", words("0")),
    **names("count count_b ni no nin nout seq enq comp status h world have want got m1 m2", number(10, 900)),
    **names("kb bytes ms ran epoch", number(65536, 99999999)),
    **names("pid tid jobid job uid line pids", number(1000, 65000)),
    **names("port p p2", number(20000, 60999)),
    **names("code ec rc", words("1", "2", "7", "134", "-6", "-9")),
    **names("status_code", words("1", "2", "7", "134")),
    **names("signo", words("6", "9", "11", "15")),
    **names("errno", words("110", "111", "113")),
    **names("gai", words("2", "3")),
    **names("fd", number(20, 90)),
    **names("oom_adj", words("0", "1000", "-500")),
    **names("xid", number(13, 149)),
    **names("cuda_code", words("1", "2", "719")),
    **names("float float_b", digits("1##.##")),
    **names("fraction fraction_b", digits("0.9####")),
    **names("mem_n", digits("1#.##")),
    **names("unit", words("GiB", "MiB")),
    **names("mem mem_b mem_c", words("2.00 GiB", "79.15 GiB", "512.00 MiB", "20.00 MiB")),
    **names("tf_size", words("15.78G", "256.00M")),
    **names("hex ptr addr mask regs mmu_addr", digits("0x@@@@@@@@")),
    **names("hex8 channel", digits("@@@@@@@@")),
    **names("id guid uuid", digits("@@@@@@@@@@@@")),
    **names("ray_id", digits("@" * 56)),
    **names("shm_id", words("aB3xQz", "k0PzrT")),
    **names("step step_id", digits("48####.#")),
    **names("pci_id", words("0000:9b:00.0", "0000:3b:00.0")),
    **names("bus", words("0000:3b:00", "0000:9b:00", "0001:00:00")),
    **names("busid", words("9b000", "3b000")),
    **names("mmdd", words("0301", "1130")),
    **names("time stamp date", STAMP),
    **names("stamp_ms", STAMP_MS),
    **names("clock", words("02:11:09")),
    # places
    **names("host node me h", HOST),
    **names("hostlist", words("node-3", "gpu[017-018]", "c1,c2")),
    **names("ip", words("10.0.3.17", "192.168.4.9")),
    **names("if", words("eth0", "ib0")),
    **names("hca", words("mlx5_0", "mlx5_bond_0")),
    **names("path dir file src script bin", PATH),
    **names("list ranks", words("0, 3", "5", "1, 2, 6")),
    **names("task_list", words("3", "0-2,5", "1,3")),
    **names("pod", words("train-worker-3", "llm-master-0")),
    **names("ns container", words("training", "pytorch")),
    **names("fs", words("scratch")),
    **names("lustre_target", words("OST0007-osc-ffff9a", "MDT0000-mdc-ffff9b")),
    **names("lustre_nid", words("10.1.0.9@o2ib", "10.1.0.12@tcp")),
    **names("url", words("https://hub.example", "https://hub.example/api/models/m7b")),
    # devices, types, shapes
    **names("dev device dev_a dev_b dev_arg dev_checked dev_got dev_found dev_other dev_out dev_part dev_input dev_indexed dev_module", DEVICE),
    **names("gpu dev_gpu", GPU),
    **names("dev_want", words("cuda:0", "cuda")),
    **names("dev_type", words("cuda", "cpu")),
    **names("cpu", words("cpu")),
    **names("legacy_a", words("cuda", "CUDA")),
    **names("legacy_b", words("cpu", "CPU")),
    **names("gpu_or_none", words("0 ", "3 ", " ")),
    **names("device_set", words("{'cpu', 'cuda'}", "{device(type='cpu'), device(type='cuda', index=0)}")),
    **names("device_list", words("[0]", "[0, 1]")),
    **names("dtype_a dtype_b", DTYPE),
    **names("dtype_set", words("{torch.float32, torch.bfloat16}")),
    **names("scalar_a scalar_b", SCALAR),
    **names("c_dtype_a c_dtype_b", words("float", "c10::Half", "c10::BFloat16")),
    **names("type_cpu", words("torch.FloatTensor", "torch.HalfTensor", "CPUBFloat16Type")),
    **names("type_gpu", words("torch.cuda.FloatTensor", "torch.cuda.HalfTensor")),
    **names("shape shape_a shape_b shape_ckpt shape_model", SHAPE),
    **names("arg arg2", words("mat1", "index", "weight", "target", "self", "tensors")),
    **names("field", words("state_steps", "exp_avgs", "grads")),
    **names("method", words("wrapper_CUDA_addmm", "wrapper_CUDA__index_select", "wrapper_CUDA_bmm")),
    **names("opt", words("adam", "adamw", "sgd")),
    **names("function", words("_thnn_conv2d_forward", "cudnn_convolution", "_th_index_select")),
    **names("aten_op", words("aten.embedding.default", "aten.add.Tensor")),
    **names("backward", words("AddmmBackward0", "MulBackward0")),
    **names("part part2", words("hidden", "parameter")),
    **names("capturable", words("on supported devices: ['cuda'].", "CUDA tensors.")),
    **names("parameter param", PARAMETER),
    **names("name_list", words("['layers.0.weight', 'layers.0.bias']", "module.head.weight, module.head.bias")),
    **names("indices", words("4 5 6", "0 1")),
    **names("uniform_what", words("original parameter", "mixed precision")),
    **names("cls", words("GPT2LMHeadModel", "DistributedDataParallel")),
    # collectives
    **names("op", words("ALLREDUCE", "BROADCAST", "_ALLGATHER_BASE", "REDUCE_SCATTER")),
    **names("nccl_op", words("AllReduce", "Broadcast")),
    **names("pg", words("0", "1 (mesh_dp)")),
    **names("desc", words("default_pg", "mesh_tp")),
    **names("work", WORK),
    **names("fingerprint", FINGERPRINT),
    **names("aspects", words("Sequence number: 4vs 3", "  Op type: ALLREDUCEvs BROADCAST")),
    **names("nccl_version", words("2.18.1")),
    **names("nccl_version_b", words("2.20.5")),
    **names("nccl_reason", NCCL_REASON),
    **names("nccl_error", words("unhandled system error", "remote process exited or there was a network error")),
    **names("nccl_last", words("socketProgress: Connection closed by remote peer gpu017<43210>")),
    **names("strerror", words("Connection refused", "Connection timed out", "No route to host")),
    **names("key k2", words("0", "default_pg/0//cuda//0", "worker/attempt_0/3")),
    **names("store_key", words("store_based_barrier_key:1")),
    **names("store_error", STORE_ERROR),
    **names("timedelta", words("0:30:00")),
    **names("gloo_text", words("[../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error")),
    **names("gai_text", words("Name or service not known", "Temporary failure in name resolution")),
    **names("tensor_name", words("allreduce.grad_3", "broadcast.opt")),
    **names("ib_event", words("port error", "local catastrophic error", "device fatal")),
    **names("shm_name", words("/dev/shm/nccl-aB3xQz", "nccl-shm-recv-3")),
    **names("no_space", words("No space left on device")),
    # processes
    **names("comm", words("python", "python3", "pt_main_thread")),
    **names("cgroup", words("/slurm/uid_1001/job_4711/step_0", "/kubepods/burstable/pod1/a7")),
    **names("nodemask", words("(null)", "0-1", "/")),
    **names("signame sig sig2", SIGNAL),
    **names("signal_text", words("Segmentation fault", "Killed", "Bus error", "Aborted")),
    **names("cmd command", COMMAND),
    **names("cpp_type", words("std::runtime_error", "c10::Error")),
    **names("exc exception", EXCEPTION),
    **names("type", words("RendezvousConnectionError", "TimeoutError")),
    **names("blanks", words(" ", "       ")),
    **names("blank_or_none", words("", " ")),
    **names("codes", words("137, 0", "1, 1")),
    **names("state", words("FAILED", "SUCCEEDED")),
    # CUDA and the kernel
    **names("cuda_kernel", words("indexSelectLargeIndex", "indexSelectSmallIndex")),
    **names("mmu_engine", words("GRAPHICS", "CE2")),
    **names("mmu_client", words("GPCCLIENT_T1_0", "HUBCLIENT_CE0")),
    **names("mmu_fault", words("FAULT_PDE", "FAULT_PTE")),
    **names("mmu_access", words("ACCESS_TYPE_VIRT_READ", "ACCESS_TYPE_VIRT_WRITE")),
    # programs
    **names("zip_reason", words("failed finding central directory", "invalid header or archive is corrupted", "not a ZIP archive")),
    **names("header_kind", words("InvalidHeaderDeserialization", "HeaderTooLarge", "MetadataIncompleteBuffer", "incomplete metadata, file not fully covered")),
    **names("zero_kind kind", words("optim_states", "model_states")),
    **names("overrides", words("['trainer.devices=8']", "[]")),
    **names("wrapper", words("ModelWrapper", "PyNormalizerTypeWrapper")),
    **names("lib", words("/opt/env/lib/flash_attn_2_cuda.so", "libcudart.so.12")),
    **names("symbol", words("_ZN2at4_ops4add6callE", "ncclCommSplit")),
    **names("module module_name", words("flash_attn", "apex.optimizers", "transformers.models.llama")),
    **names("hub_what", words("this file", "the files")),
    **names("dataset", words("glue", "org/corpus")),
    **names("hub_exception", words("LocalEntryNotFoundError", "ConnectionError")),
    **names("backend", words("inductor", "eager")),
    **names("triton_target", words("GPUTarget(backend='cuda', arch=90, warp_size=32)")),
    **names("triton_list", words("[]", "[<class 'CUDABackend'>]")),
    **names("pickle_what", words("local object 'make_loader.<locals>.<lambda>'", "<function f at 0x7f11>: attribute lookup f on __main__ failed")),
    **names("dict_key", words("'input_ids'", "'WORLD_SIZE'", "3")),
    **names("nan_msg", words("found NaN in local forward loss calculation")),
    **names("rerun_verdict", words("Possible persistent error!", "Possible transient error!", "Correct result (but possible Application error)!")),
    # schedulers, Ray
    **names("task_name", words("train_fn", "RayTrainWorker.execute")),
    **names("ray_task", words("task ID: ffff0a", "actor ID: ffff0b")),
    **names("ray_exit", words("SYSTEM_ERROR", "INTENDED_USER_EXIT")),
    **names("raylet_head", words("node_manager.cc:3193:", "[2026-03-01 02:11:09,123 E 77 77] node_manager.cc:3193:")),
    **names("procs", words("", "Process 4711 has 70.12 GiB memory in use. ")),
    **names("procs_b", words("", "Process 4711 has 70.12 GiB memory in use. ")),
    # what may be anything
    **names("sentence text what reason more any first when where who args target target", SENTENCE),
    **names("healthy", HEALTHY),
    **names("name actor", words("train_fn", "worker-3")),
    **names("fn", words("train_fn", "step")),
    **names("stream", words("stdout", "stderr")),
    **names("role", words("default", "trainer")),
    **names("level", words("INFO", "ERROR")),
}


def split(template):
    """The template as a list of texts and of holes, each a list of alternatives."""
    stack = [[[""]]]  # the innermost open hole is last
    i = 0
    while i < len(template):
        two = template[i:i + 2]
        one = template[i]
        if two in ("\\{", "\\n"):
            stack[-1][-1].append("{" if two == "\\{" else "\n")
            i += 2
            continue
        if one == "{":
            stack.append([[""]])
        elif one == "}" and len(stack) > 1:
            hole = stack.pop()
            stack[-1][-1].append(hole)
        elif one == "|" and len(stack) > 1:
            stack[-1].append([""])
        else:
            stack[-1][-1].append(one)
        i += 1
    if len(stack) > 1:
        raise ValueError(f"a hole is open: {template}")
    return stack[0][0]


def render(parts, rng):
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif len(part) > 1:
            out.append(render(rng.choice(part), rng))
        else:
            out.append(VALUES["".join(part[0])](rng))
    return "".join(out)


def fill(template, rng):
    """The text with every hole filled; raises KeyError for a name that VALUES lacks."""
    return render(split(template), rng)
