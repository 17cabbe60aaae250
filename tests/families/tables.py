"""The families: configuration and class of transformers, and where each tensor of the file that save_pretrained writes
stands in attnc's terms. Written from the modelling code and keyed by the file's names, so that they share nothing with
the specs. A line is `FILE'S NAME  CANONICAL…  [HOW]`; `#` is a layer's number, a name stands for its weight and its
bias. HOW: `transpose`, `rows A B C` (the rows of each canonical tensor, one under the other), `groups G A B C` (the
same in each of G groups, A, B, C counted in parts). A line whose tensor a family does not have says nothing there."""

# ---------------------------------------------------------------- the file's names, and what they hold

BERT_LAYER = """
encoder.layer.#.attention.self.query            encoder.layers.#.attention.query
encoder.layer.#.attention.self.key              encoder.layers.#.attention.key
encoder.layer.#.attention.self.value            encoder.layers.#.attention.value
encoder.layer.#.attention.output.dense          encoder.layers.#.attention.output
encoder.layer.#.attention.output.LayerNorm      encoder.layers.#.attention.norm_out
encoder.layer.#.intermediate.dense              encoder.layers.#.ffn.up
encoder.layer.#.output.dense                    encoder.layers.#.ffn.down
encoder.layer.#.output.LayerNorm                encoder.layers.#.ffn.norm_out
"""
BERT_EMBEDDING = """
embeddings.word_embeddings                         encoder.embedding.tokens
embeddings.position_embeddings                     encoder.embedding.positions
embeddings.token_type_embeddings                   encoder.embedding.segments
embeddings.LayerNorm                               encoder.embedding.norm
"""
POOLER = "pooler.dense                             pooler\n"
ALBERT = """
encoder.embedding_hidden_mapping_in                                        encoder.embedding.projection
encoder.albert_layer_groups.0.albert_layers.0.attention.query             encoder.layers.0.attention.query
encoder.albert_layer_groups.0.albert_layers.0.attention.key               encoder.layers.0.attention.key
encoder.albert_layer_groups.0.albert_layers.0.attention.value             encoder.layers.0.attention.value
encoder.albert_layer_groups.0.albert_layers.0.attention.dense             encoder.layers.0.attention.output
encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm         encoder.layers.0.attention.norm_out
encoder.albert_layer_groups.0.albert_layers.0.ffn                         encoder.layers.0.ffn.up
encoder.albert_layer_groups.0.albert_layers.0.ffn_output                  encoder.layers.0.ffn.down
encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm       encoder.layers.0.ffn.norm_out
pooler                                                                     pooler
"""
MPNET = """
encoder.layer.#.attention.attn.q                   encoder.layers.#.attention.query
encoder.layer.#.attention.attn.k                   encoder.layers.#.attention.key
encoder.layer.#.attention.attn.v                   encoder.layers.#.attention.value
encoder.layer.#.attention.attn.o                   encoder.layers.#.attention.output
encoder.layer.#.attention.LayerNorm                encoder.layers.#.attention.norm_out
encoder.layer.#.intermediate.dense                 encoder.layers.#.ffn.up
encoder.layer.#.output.dense                       encoder.layers.#.ffn.down
encoder.layer.#.output.LayerNorm                   encoder.layers.#.ffn.norm_out
encoder.relative_attention_bias         encoder.relative
"""
DISTILBERT = """
transformer.layer.#.attention.q_lin                encoder.layers.#.attention.query
transformer.layer.#.attention.k_lin                encoder.layers.#.attention.key
transformer.layer.#.attention.v_lin                encoder.layers.#.attention.value
transformer.layer.#.attention.out_lin              encoder.layers.#.attention.output
transformer.layer.#.sa_layer_norm                  encoder.layers.#.attention.norm_out
transformer.layer.#.ffn.lin1                       encoder.layers.#.ffn.up
transformer.layer.#.ffn.lin2                       encoder.layers.#.ffn.down
transformer.layer.#.output_layer_norm              encoder.layers.#.ffn.norm_out
"""
QKV = "decoder.layers.#.attention.query decoder.layers.#.attention.key decoder.layers.#.attention.value"
MODERNBERT = f"""
embeddings.tok_embeddings                          encoder.embedding.tokens
embeddings.norm                                    encoder.embedding.norm
layers.#.attn_norm                                 encoder.layers.#.attention.norm_in
layers.#.attn.Wqkv                                 {QKV.replace("decoder", "encoder")} rows 16 16 16
layers.#.attn.Wo                                   encoder.layers.#.attention.output
layers.#.mlp_norm                                  encoder.layers.#.ffn.norm_in
layers.#.mlp.Wi                                    encoder.layers.#.ffn.gate encoder.layers.#.ffn.up rows 40 40
layers.#.mlp.Wo                                    encoder.layers.#.ffn.down
final_norm                                         encoder.final_norm
"""
GPT2 = f"""
transformer.wte                                    decoder.embedding.tokens
transformer.wpe                                    decoder.embedding.positions
transformer.h.#.ln_1                               decoder.layers.#.attention.norm_in
transformer.h.#.attn.c_attn                        {QKV} transpose rows 16 16 16
transformer.h.#.attn.c_proj                        decoder.layers.#.attention.output transpose
transformer.h.#.ln_2                               decoder.layers.#.ffn.norm_in
transformer.h.#.mlp.c_fc                           decoder.layers.#.ffn.up transpose
transformer.h.#.mlp.c_proj                         decoder.layers.#.ffn.down transpose
transformer.ln_f                                   decoder.final_norm
"""
GPT_NEOX = f"""
gpt_neox.embed_in                                  decoder.embedding.tokens
gpt_neox.layers.#.input_layernorm                  decoder.layers.#.attention.norm_in
gpt_neox.layers.#.attention.query_key_value        {QKV} groups 4 1 1 1
gpt_neox.layers.#.attention.dense                  decoder.layers.#.attention.output
gpt_neox.layers.#.post_attention_layernorm         decoder.layers.#.ffn.norm_in
gpt_neox.layers.#.mlp.dense_h_to_4h                decoder.layers.#.ffn.up
gpt_neox.layers.#.mlp.dense_4h_to_h                decoder.layers.#.ffn.down
gpt_neox.final_layer_norm                          decoder.final_norm
embed_out                                          head
"""
BLOOM_LIKE = """
transformer.word_embeddings                        decoder.embedding.tokens
transformer.word_embeddings_layernorm              decoder.embedding.norm
transformer.h.#.input_layernorm                    decoder.layers.#.attention.norm_in
transformer.h.#.ln_attn                            decoder.layers.#.attention.norm_in
transformer.h.#.self_attention.query_key_value     {QKV} {HOW}
transformer.h.#.self_attention.dense               decoder.layers.#.attention.output
transformer.h.#.post_attention_layernorm           decoder.layers.#.ffn.norm_in
transformer.h.#.ln_mlp                             decoder.layers.#.ffn.norm_in
transformer.h.#.mlp.dense_h_to_4h                  decoder.layers.#.ffn.up
transformer.h.#.mlp.dense_4h_to_h                  decoder.layers.#.ffn.down
transformer.ln_f                                   decoder.final_norm
""".replace("{QKV}", QKV)
MPT = f"""
transformer.wte                                    decoder.embedding.tokens
transformer.blocks.#.norm_1                        decoder.layers.#.attention.norm_in
transformer.blocks.#.attn.Wqkv                     {QKV} rows 16 16 16
transformer.blocks.#.attn.out_proj                 decoder.layers.#.attention.output
transformer.blocks.#.norm_2                        decoder.layers.#.ffn.norm_in
transformer.blocks.#.ffn.up_proj                   decoder.layers.#.ffn.up
transformer.blocks.#.ffn.down_proj                 decoder.layers.#.ffn.down
transformer.norm_f                                 decoder.final_norm
"""
LLAMA = f"""
model.embed_tokens                                 decoder.embedding.tokens
model.layers.#.input_layernorm                     decoder.layers.#.attention.norm_in
model.layers.#.self_attn.q_proj                    decoder.layers.#.attention.query
model.layers.#.self_attn.k_proj                    decoder.layers.#.attention.key
model.layers.#.self_attn.v_proj                    decoder.layers.#.attention.value
model.layers.#.self_attn.qkv_proj                  {QKV} rows 32 16 16
model.layers.#.self_attn.o_proj                    decoder.layers.#.attention.output
model.layers.#.self_attn.dense                     decoder.layers.#.attention.output
model.layers.#.self_attn.q_norm                    decoder.layers.#.attention.query_norm
model.layers.#.self_attn.k_norm                    decoder.layers.#.attention.key_norm
model.layers.#.post_attention_layernorm            decoder.layers.#.{{AFTER}}
model.layers.#.pre_feedforward_layernorm           decoder.layers.#.ffn.norm_in
model.layers.#.post_feedforward_layernorm          decoder.layers.#.ffn.norm_out
model.layers.#.mlp.gate_up_proj                    decoder.layers.#.ffn.gate decoder.layers.#.ffn.up rows 40 40
model.layers.#.mlp.gate_proj                       decoder.layers.#.ffn.gate
model.layers.#.mlp.up_proj                         decoder.layers.#.ffn.up
model.layers.#.mlp.down_proj                       decoder.layers.#.ffn.down
model.layers.#.mlp.fc1                             decoder.layers.#.ffn.up
model.layers.#.mlp.fc2                             decoder.layers.#.ffn.down
model.layers.#.mlp.c_fc                            decoder.layers.#.ffn.up
model.layers.#.mlp.c_proj                          decoder.layers.#.ffn.down
model.norm                                         decoder.final_norm
model.final_layernorm                              decoder.final_norm
lm_head                                            head
"""
PRE_LLAMA = LLAMA.replace("{AFTER}", "ffn.norm_in")
BOTH_LLAMA = LLAMA.replace("{AFTER}", "attention.norm_out")
HUNYUAN = PRE_LLAMA + """
model.layers.#.self_attn.query_layernorm           decoder.layers.#.attention.query_norm
model.layers.#.self_attn.key_layernorm             decoder.layers.#.attention.key_norm
"""
BITNET = PRE_LLAMA + """
model.layers.#.self_attn.attn_sub_norm             decoder.layers.#.attention.inner_norm
model.layers.#.mlp.ffn_sub_norm                    decoder.layers.#.ffn.inner_norm
"""


def t5_table(head):
    lines = []
    for stack in "encoder", "decoder":
        b, c = f"{stack}.block.#.layer", f"{stack}.layers.#"
        lines.append(f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias {stack}.relative")
        for number, name, ours in (0, "SelfAttention", "attention"), (1, "EncDecAttention", "cross_attention"):
            for letter, what in ("q", "query"), ("k", "key"), ("v", "value"), ("o", "output"):
                lines.append(f"{b}.{number}.{name}.{letter} {c}.{ours}.{what}")
        lines += [f"{b}.0.layer_norm {c}.attention.norm_in", f"{stack}.final_layer_norm {stack}.final_norm"]
        last = 1 if stack == "encoder" else 2
        lines.append(f"{b}.{last}.layer_norm {c}.ffn.norm_in")
        for w, what in ("wi", "up"), ("wi_0", "gate"), ("wi_1", "up"), ("wo", "down"):
            lines.append(f"{b}.{last}.DenseReluDense.{w} {c}.ffn.{what}")
    lines.append("decoder.block.#.layer.1.layer_norm decoder.layers.#.cross_attention.norm_in")
    return "\n".join(lines + [head])


def bart_table(norm, alone=False):
    lines = [] if alone else ["model.shared embedding.tokens", "final_logits_bias head.bias"]
    for stack in ("decoder",) if alone else ("encoder", "decoder"):
        b, c = f"model.{stack}.layers.#", f"{stack}.layers.#"
        for theirs, ours in ("self_attn", "attention"), ("encoder_attn", "cross_attention"):
            for letter, what in ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output"):
                lines.append(f"{b}.{theirs}.{letter} {c}.{ours}.{what}")
            lines.append(f"{b}.{theirs}_layer_norm {c}.{ours}.{norm}")
        lines += [
            f"{b}.fc1 {c}.ffn.up",
            f"{b}.fc2 {c}.ffn.down",
            f"{b}.final_layer_norm {c}.ffn.{norm}",
            f"model.{stack}.embed_positions {stack}.embedding.positions",
            f"model.{stack}.embed_tokens {stack}.embedding.tokens",
            f"model.{stack}.layernorm_embedding {stack}.embedding.norm",
            f"model.{stack}.layer_norm {stack}.final_norm",
            f"model.{stack}.final_layer_norm {stack}.final_norm",
        ]
    return "\n".join(lines)


def vit_table(prefix):
    b, c = prefix + "encoder.layer.#", "encoder.layers.#"
    return f"""
{prefix}embeddings.cls_token encoder.embedding.class_token
{prefix}embeddings.distillation_token encoder.embedding.distillation_token
{prefix}embeddings.position_embeddings encoder.embedding.positions.weight
{prefix}embeddings.patch_embeddings.projection encoder.embedding.patches
{b}.layernorm_before {c}.attention.norm_in
{b}.attention.attention.query {c}.attention.query
{b}.attention.attention.key {c}.attention.key
{b}.attention.attention.value {c}.attention.value
{b}.attention.output.dense {c}.attention.output
{b}.layernorm_after {c}.ffn.norm_in
{b}.intermediate.dense {c}.ffn.up
{b}.output.dense {c}.ffn.down
{prefix}layernorm encoder.final_norm
classifier classifier
"""


DINOV3 = """
embeddings.cls_token                               encoder.embedding.class_token
embeddings.register_tokens                         encoder.embedding.registers
embeddings.patch_embeddings                        encoder.embedding.patches
layer.#.norm1                                      encoder.layers.#.attention.norm_in
layer.#.attention.q_proj                           encoder.layers.#.attention.query
layer.#.attention.k_proj                           encoder.layers.#.attention.key
layer.#.attention.v_proj                           encoder.layers.#.attention.value
layer.#.attention.o_proj                           encoder.layers.#.attention.output
layer.#.layer_scale1.lambda1                       encoder.layers.#.attention.residual.weight
layer.#.norm2                                      encoder.layers.#.ffn.norm_in
layer.#.mlp.up_proj                                encoder.layers.#.ffn.up
layer.#.mlp.down_proj                              encoder.layers.#.ffn.down
layer.#.layer_scale2.lambda1                       encoder.layers.#.ffn.residual.weight
norm                                               encoder.final_norm
"""
GLM4 = PRE_LLAMA + """
model.layers.#.post_self_attn_layernorm            decoder.layers.#.attention.norm_out
model.layers.#.post_mlp_layernorm                  decoder.layers.#.ffn.norm_out
"""
GPTJ = """
transformer.wte                                    decoder.embedding.tokens
transformer.wpe                                    decoder.embedding.positions
transformer.h.#.ln_1                               decoder.layers.#.attention.norm_in
transformer.h.#.attn{IN}.q_proj                    decoder.layers.#.attention.query
transformer.h.#.attn{IN}.k_proj                    decoder.layers.#.attention.key
transformer.h.#.attn{IN}.v_proj                    decoder.layers.#.attention.value
transformer.h.#.attn{IN}.out_proj                  decoder.layers.#.attention.output
transformer.h.#.ln_2                               decoder.layers.#.ffn.norm_in
transformer.h.#.mlp.fc_in                          decoder.layers.#.ffn.up
transformer.h.#.mlp.fc_out                         decoder.layers.#.ffn.down
transformer.h.#.mlp.c_fc                           decoder.layers.#.ffn.up
transformer.h.#.mlp.c_proj                         decoder.layers.#.ffn.down
transformer.ln_f                                   decoder.final_norm
lm_head                                            head
"""
CLIP_TEXT = """
embeddings.token_embedding                         encoder.embedding.tokens
embeddings.position_embedding                      encoder.embedding.positions
encoder.layers.#.layer_norm1                       encoder.layers.#.attention.norm_in
encoder.layers.#.self_attn.q_proj                  encoder.layers.#.attention.query
encoder.layers.#.self_attn.k_proj                  encoder.layers.#.attention.key
encoder.layers.#.self_attn.v_proj                  encoder.layers.#.attention.value
encoder.layers.#.self_attn.out_proj                encoder.layers.#.attention.output
encoder.layers.#.layer_norm2                       encoder.layers.#.ffn.norm_in
encoder.layers.#.mlp.fc1                           encoder.layers.#.ffn.up
encoder.layers.#.mlp.fc2                           encoder.layers.#.ffn.down
final_layer_norm                                   encoder.final_norm
"""
UMT5 = t5_table("shared embedding.tokens") + "".join(
    f"\n{stack}.block.#.layer.0.SelfAttention.relative_attention_bias {stack}.layers.#.attention.relative"
    for stack in ("encoder", "decoder")
)
UMT5 = "\n".join(line for line in UMT5.split("\n") if ".block.0." not in line)


# ---------------------------------------------------------------- families: configuration, class, settings, table
# Sizes are those of the specs; what is not written is the configuration's default.
TINY = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=40,
    vocab_size=50,
    max_position_embeddings=32,
)
WIDE = dict(TINY, hidden_size=32, num_key_value_heads=2, pad_token_id=None)
PAIR = dict(
    d_model=16,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    vocab_size=50,
    max_position_embeddings=32,
)
T5 = dict(d_model=16, d_kv=8, d_ff=40, num_layers=2, num_heads=4, vocab_size=50, decoder_start_token_id=0)
IMAGE = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=40,
    image_size=8,
    patch_size=4,
    num_labels=5,
)
LONGROPE = dict(
    rope_type="longrope",
    rope_theta=10000.0,
    short_factor=[1.0, 1.05, 1.1, 1.2],
    long_factor=[1.0, 1.5, 2.5, 4.0],
    original_max_position_embeddings=16,
)


def rope(theta, **more):
    return dict({"rope_type": "default", "rope_theta": float(theta)}, **more)


FAMILIES = {
    "bert": ("BertConfig", "BertModel", TINY, BERT_EMBEDDING + BERT_LAYER + POOLER),
    "roberta": (
        "RobertaConfig",
        "RobertaModel",
        dict(TINY, type_vocab_size=1, layer_norm_eps=1e-5, max_position_embeddings=34),
        BERT_EMBEDDING + BERT_LAYER + POOLER,
    ),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        dict(dim=16, n_layers=2, n_heads=4, hidden_dim=40, vocab_size=50, max_position_embeddings=32),
        BERT_EMBEDDING + DISTILBERT,
    ),
    "electra": (
        "ElectraConfig",
        "ElectraModel",
        dict(TINY, embedding_size=8),
        BERT_EMBEDDING + BERT_LAYER + "embeddings_project encoder.embedding.projection",
    ),
    "albert": (
        "AlbertConfig",
        "AlbertModel",
        dict(TINY, num_hidden_layers=3, embedding_size=8),
        BERT_EMBEDDING + ALBERT,
    ),
    "mpnet": (
        "MPNetConfig",
        "MPNetModel",
        dict(TINY, layer_norm_eps=1e-5, max_position_embeddings=34),
        BERT_EMBEDDING + MPNET + POOLER,
    ),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertModel",
        dict(
            TINY,
            num_hidden_layers=5,
            local_attention=8,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            cls_token_id=1,
            sep_token_id=2,
        ),
        MODERNBERT,
    ),
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        dict(n_embd=16, n_layer=2, n_head=4, vocab_size=50, n_positions=32),
        GPT2,
    ),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", dict(TINY, hidden_size=32), GPT_NEOX),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        dict(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=40,
            word_embed_proj_dim=16,
            vocab_size=50,
            max_position_embeddings=32,
        ),
        bart_table("norm_in", alone=True),
    ),
    "bloom": (
        "BloomConfig",
        "BloomForCausalLM",
        dict(hidden_size=16, n_layer=2, n_head=4, vocab_size=50),
        BLOOM_LIKE.replace("{HOW}", "groups 4 1 1 1"),
    ),
    "mpt": ("MptConfig", "MptForCausalLM", dict(d_model=16, n_heads=4, n_layers=2, vocab_size=50, max_seq_len=32), MPT),
    "falcon": (
        "FalconConfig",
        "FalconForCausalLM",
        dict(TINY, hidden_size=32),
        BLOOM_LIKE.replace("{HOW}", "rows 32 8 8"),
    ),
    "falcon_40b": (
        "FalconConfig",
        "FalconForCausalLM",
        dict(TINY, hidden_size=32, new_decoder_architecture=True, num_kv_heads=2),
        BLOOM_LIKE.replace("{HOW}", "groups 2 2 1 1"),
    ),
    "falcon_rw": (
        "FalconConfig",
        "FalconForCausalLM",
        dict(TINY, hidden_size=32, multi_query=False, parallel_attn=False, alibi=True, bias=True),
        BLOOM_LIKE.replace("{HOW}", "groups 4 1 1 1"),
    ),
    "phi": ("PhiConfig", "PhiForCausalLM", TINY, PRE_LLAMA),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", dict(WIDE, sliding_window=15), PRE_LLAMA),
    "phi3_longrope": (
        "Phi3Config",
        "Phi3ForCausalLM",
        dict(WIDE, original_max_position_embeddings=16, rope_parameters=LONGROPE),
        PRE_LLAMA,
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", TINY, PRE_LLAMA),
    "llama3": (
        "LlamaConfig",
        "LlamaForCausalLM",
        dict(
            WIDE,
            rms_norm_eps=1e-5,
            rope_parameters=rope(
                500000,
                rope_type="llama3",
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=16,
            ),
        ),
        PRE_LLAMA,
    ),
    "mistral": ("MistralConfig", "MistralForCausalLM", dict(WIDE, rms_norm_eps=1e-5, sliding_window=8), PRE_LLAMA),
    "qwen2": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        dict(WIDE, tie_word_embeddings=True, rope_parameters=rope(1000000)),
        PRE_LLAMA,
    ),
    "qwen3": (
        "Qwen3Config",
        "Qwen3ForCausalLM",
        dict(TINY, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True, rope_parameters=rope(1000000)),
        PRE_LLAMA,
    ),
    "hunyuan": (
        "HunYuanDenseV1Config",
        "HunYuanDenseV1ForCausalLM",
        dict(TINY, num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-5, rope_parameters=rope(10000)),
        HUNYUAN,
    ),
    "bitnet": (
        "BitNetConfig",
        "BitNetForCausalLM",
        dict(WIDE, rms_norm_eps=1e-5, hidden_act="relu2", rope_parameters=rope(500000)),
        BITNET,
    ),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", dict(TINY, head_dim=8, num_key_value_heads=1), PRE_LLAMA),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        dict(TINY, num_hidden_layers=3, head_dim=8, num_key_value_heads=2, sliding_window=8, query_pre_attn_scalar=16),
        BOTH_LLAMA,
    ),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        dict(
            TINY,
            num_hidden_layers=7,
            head_dim=8,
            num_key_value_heads=2,
            sliding_window=8,
            query_pre_attn_scalar=16,
            rope_parameters=dict(
                full_attention=rope(1000000, rope_type="linear", factor=8.0), sliding_attention=rope(10000)
            ),
        ),
        BOTH_LLAMA,
    ),
    "olmo2": (
        "Olmo2Config",
        "Olmo2ForCausalLM",
        dict(WIDE, rms_norm_eps=1e-6, rope_parameters=rope(500000)),
        BOTH_LLAMA,
    ),
    "starcoder2": (
        "Starcoder2Config",
        "Starcoder2ForCausalLM",
        dict(WIDE, sliding_window=8, rope_parameters=rope(100000)),
        PRE_LLAMA,
    ),
    "cohere": (
        "CohereConfig",
        "CohereForCausalLM",
        dict(WIDE, use_qk_norm=True, rope_parameters=rope(75000000)),
        PRE_LLAMA,
    ),
    "stablelm": (
        "StableLmConfig",
        "StableLmForCausalLM",
        dict(WIDE, hidden_size=64, use_qkv_bias=True, rope_parameters=rope(10000, partial_rotary_factor=0.25)),
        PRE_LLAMA,
    ),
    "granite": (
        "GraniteConfig",
        "GraniteForCausalLM",
        dict(
            WIDE,
            embedding_multiplier=12.0,
            attention_multiplier=0.125,
            residual_multiplier=0.22,
            logits_scaling=8.0,
            tie_word_embeddings=True,
        ),
        PRE_LLAMA,
    ),
    "smollm3": (
        "SmolLM3Config",
        "SmolLM3ForCausalLM",
        dict(WIDE, num_hidden_layers=4, rope_parameters=rope(5000000)),
        PRE_LLAMA,
    ),
    "olmo3": (
        "Olmo3Config",
        "Olmo3ForCausalLM",
        dict(
            WIDE,
            num_hidden_layers=4,
            sliding_window=8,
            rope_parameters=dict(
                full_attention=rope(
                    500000,
                    rope_type="yarn",
                    factor=8.0,
                    original_max_position_embeddings=16,
                    attention_factor=1.2,
                ),
                sliding_attention=rope(500000),
            ),
        ),
        BOTH_LLAMA,
    ),
    "ministral": (
        "MinistralConfig",
        "MinistralForCausalLM",
        dict(WIDE, head_dim=8, sliding_window=8, layer_types=["sliding_attention", "full_attention"]),
        PRE_LLAMA,
    ),
    "glm4": ("Glm4Config", "Glm4ForCausalLM", dict(WIDE, head_dim=8), GLM4),
    "gptj": (
        "GPTJConfig",
        "GPTJForCausalLM",
        dict(n_embd=32, n_layer=2, n_head=4, vocab_size=50, n_positions=32, rotary_dim=4),
        GPTJ.replace("{IN}", ""),
    ),
    "gpt_neo": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        dict(
            hidden_size=16,
            num_layers=4,
            num_heads=4,
            vocab_size=50,
            max_position_embeddings=32,
            window_size=8,
            attention_types=[[["global", "local"], 2]],
        ),
        GPTJ.replace("{IN}", ".attention"),
    ),
    "gpt_bigcode": (
        "GPTBigCodeConfig",
        "GPTBigCodeForCausalLM",
        dict(n_embd=16, n_layer=2, n_head=4, vocab_size=50, n_positions=32),
        GPT2.replace("rows 16 16 16", "rows 16 4 4").replace("transpose", ""),
    ),
    "clip_text": ("CLIPTextConfig", "CLIPTextModel", TINY, CLIP_TEXT),
    "roformer": (
        "RoFormerConfig",
        "RoFormerModel",
        dict(TINY, hidden_size=32, embedding_size=8),
        BERT_EMBEDDING + BERT_LAYER + "embeddings_project encoder.embedding.projection",
    ),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration", T5, UMT5),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5, t5_table("shared embedding.tokens")),
    "flan_t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        t5_table("shared encoder.embedding.tokens decoder.embedding.tokens\nlm_head head"),
    ),
    "bart": ("BartConfig", "BartForConditionalGeneration", PAIR, bart_table("norm_out")),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", dict(PAIR, scale_embedding=True), bart_table("norm_in")),
    "marian": (
        "MarianConfig",
        "MarianMTModel",
        dict(PAIR, pad_token_id=49, decoder_start_token_id=49, scale_embedding=True, activation_function="swish"),
        bart_table("norm_out"),
    ),
    "pegasus": (
        "PegasusConfig",
        "PegasusForConditionalGeneration",
        dict(PAIR, scale_embedding=True, activation_function="relu"),
        bart_table("norm_in"),
    ),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", PAIR, bart_table("norm_in")),
    "vit": ("ViTConfig", "ViTForImageClassification", IMAGE, vit_table("vit.")),
    "deit": ("DeiTConfig", "DeiTForImageClassification", IMAGE, vit_table("deit.")),
    "dinov3": ("DINOv3ViTConfig", "DINOv3ViTModel", dict(IMAGE, num_register_tokens=3), DINOV3),
}
# Sinusoids, which the classes hold as weights (and Pegasus writes to the file), and attnc computes; and a row that
# stands in place of patches in training alone.
SINUSOIDS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
COMPUTED = {"pegasus": SINUSOIDS, "marian": SINUSOIDS, "roformer": ("encoder.embed_positions.weight",),
            "dinov3": ("embeddings.mask_token",)}
