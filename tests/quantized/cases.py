"""Ways to quantize a matrix, each with the `quantization_config` that says so."""
from lib import quantized


def group(**weights):
    return {"group_0": {"targets": ["Linear"], "weights": weights}}


def compressed(form, **weights):
    return dict(quant_method="compressed-tensors", format=form, config_groups=group(**weights), ignore=["lm_head"],
                quantization_status="compressed")


PACK, INT, FLOAT = "pack-quantized", "int-quantized", "float-quantized"
GPTQ, AWQ = dict(quant_method="gptq", bits=4, group_size=32), dict(quant_method="awq", bits=4, group_size=32)
FP8, BNB = dict(quant_method="fp8", activation_scheme="dynamic"), dict(quant_method="bitsandbytes", load_in_4bit=True)
CASES = {  # name: the config, how a matrix is made, and its options
    "gptq": (GPTQ, quantized.gptq, {}),
    "gptq_v2": (dict(GPTQ, checkpoint_format="gptq_v2"), quantized.gptq, dict(version=2)),
    "gptq_whole_rows": (dict(GPTQ, group_size=-1), quantized.gptq, dict(group=-1)),
    "gptq_2_bits": (dict(GPTQ, bits=2), quantized.gptq, dict(bits=2)),
    "gptq_8_bits": (dict(GPTQ, bits=8, desc_act=True), quantized.gptq, dict(bits=8, order=True)),
    "gptq_order": (dict(GPTQ, desc_act=True), quantized.gptq, dict(order=True)),
    "gptq_f32": (GPTQ, quantized.gptq, dict(scales="F32")),
    "awq": (dict(AWQ, version="gemm", zero_point=True), quantized.awq, {}),
    "compressed_groups": (compressed(PACK, num_bits=4, group_size=32), quantized.compressed, {}),
    "compressed_zeros": (compressed(PACK, num_bits=4, group_size=32, symmetric=False), quantized.compressed,
                         dict(zeros=True, kind="F16")),
    "compressed_rows": (compressed(PACK, num_bits=8), quantized.compressed, dict(bits=8, group=-1, kind="F32")),
    "compressed_3_bits": (compressed(PACK, num_bits=3, group_size=32), quantized.compressed, dict(bits=3, zeros=True)),
    "compressed_int8": (compressed(INT, num_bits=8), quantized.scaled, dict(codes="I8", kind="BF16", rounded="BF16")),
    "compressed_int8_zeros": (compressed(INT, num_bits=8), quantized.scaled,
                              dict(codes="I8", kind="F16", rounded="F16", zeros=True)),
    "compressed_float8": (compressed(FLOAT, num_bits=8, type="float"), quantized.scaled,
                          dict(kind="BF16", rounded="BF16")),
    "compressed_float8_blocks": (compressed(FLOAT, num_bits=8, block_structure=[32, 48]), quantized.scaled,
                                 dict(kind="F16", rounded="F16", block=(32, 48))),
    "fp8_blocks": (dict(FP8, weight_block_size=[48, 40]), quantized.scaled,
                   dict(block=(48, 40), suffix=".weight_scale_inv")),
    "fp8_tensors": (FP8, quantized.scaled, dict(block=(0, 0), kind="BF16")),
    "fbgemm": (dict(quant_method="fbgemm_fp8"), quantized.scaled, {}),
    "nf4": (BNB, quantized.nf4, {}),
    "nf4_nested": (BNB, quantized.nf4, dict(nested=7, kind="float16")),
    "nf4_f32": (BNB, quantized.nf4, dict(nested=16, block=32, kind="float32")),
    "llm_int8": (dict(quant_method="bitsandbytes", load_in_8bit=True), quantized.llm_int8, {}),
}
