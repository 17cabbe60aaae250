"""ONNX Runtime and OpenVINO; outputs go to memory that is bound before. In f32 both run one ONNX file with static
shapes; in low precision files for any shape, which OpenVINO is told before it compiles."""
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
        self.result = ort.OrtValue.ortvalue_from_shape_and_type(params.get("shape") or node.shape, np.float32)
        self.binding.bind_ortvalue_output(node.name, self.result)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def output(self):
        return self.result.numpy()

    def judge(self, given):
        name = self.session.get_inputs()[0].name
        for text in given:
            yield self.session.run(None, {name: text[None, text >= 0]})[0]


class OpenVino(Peer):
    """One stream, threads as asked; one request whose tensors are set before. `precision`: the hint, f32 without it, or
    "" for its own choice; `hint`: of performance, LATENCY without it; `shape`: of the inputs of a model for any
    shape."""
    def __init__(self, params, inputs):
        import openvino as ov
        self.version = ov.__version__.split("-", maxsplit=1)[0]
        self.core, self.model = ov.Core(), params["model"]
        self.options = {"INFERENCE_NUM_THREADS": params["threads"], "NUM_STREAMS": "1", "ENABLE_CPU_PINNING": False,
                        "PERFORMANCE_HINT": params.get("hint", "LATENCY")}
        precision = params.get("precision", "f32")
        if precision:
            self.options["INFERENCE_PRECISION_HINT"] = precision
        graph = self.core.read_model(self.model)
        if "shape" in params:
            graph.reshape(list(inputs[0].shape))
        compiled = self.core.compile_model(graph, "CPU", self.options)
        if not precision:
            self.note = "hint %s" % compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        self.request = compiled.create_infer_request()
        self.kept = inputs
        for i, array in enumerate(inputs):
            self.request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))
        self.result = self.request.get_output_tensor(0)

    def run(self):
        self.request.infer()

    def output(self):
        return np.array(self.result.data)

    def judge(self, given):
        request = self.core.compile_model(self.core.read_model(self.model), "CPU", self.options).create_infer_request()
        for text in given:
            yield np.array(request.infer([text[None, text >= 0]])[0])


def prepare(params):
    inputs = [np.ascontiguousarray(np.load(path)) for path in params["inputs"]]
    return {"ort": OnnxRuntime, "openvino": OpenVino}[params["peer"]](params, inputs)
