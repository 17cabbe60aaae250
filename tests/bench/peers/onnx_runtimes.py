"""ONNX Runtime and OpenVINO, on one ONNX file with static shapes; outputs go to memory that is bound before."""
import numpy as np

from worker import Peer


class OnnxRuntime(Peer):
    """All graph optimizations, intra-op threads as asked and one inter-op thread, inputs and outputs bound."""
    def __init__(self, params, inputs):
        import onnxruntime as ort
        self.version = ort.__version__
        options = ort.SessionOptions()
        options.intra_op_num_threads = params["threads"]
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = ort.InferenceSession(params["model"], options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.values = [ort.OrtValue.ortvalue_from_numpy(a) for a in inputs]
        for node, value in zip(self.session.get_inputs(), self.values):
            self.binding.bind_ortvalue_input(node.name, value)
        node = self.session.get_outputs()[0]
        self.result = ort.OrtValue.ortvalue_from_shape_and_type(node.shape, np.float32)
        self.binding.bind_ortvalue_output(node.name, self.result)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def output(self):
        return self.result.numpy()


class OpenVino(Peer):
    """Precision hint f32, one stream, latency hint, threads as asked; one request whose tensors are set before."""
    def __init__(self, params, inputs):
        import openvino as ov
        self.version = ov.__version__.split("-", maxsplit=1)[0]
        core = ov.Core()
        compiled = core.compile_model(core.read_model(params["model"]), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": params["threads"], "NUM_STREAMS": "1",
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False})
        self.request = compiled.create_infer_request()
        self.kept = inputs
        for i, array in enumerate(inputs):
            self.request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))
        self.result = self.request.get_output_tensor(0)

    def run(self):
        self.request.infer()

    def output(self):
        return np.array(self.result.data)


def prepare(params):
    inputs = [np.ascontiguousarray(np.load(path)) for path in params["inputs"]]
    return {"ort": OnnxRuntime, "openvino": OpenVino}[params["peer"]](params, inputs)
