"""The graphs against the plain reference, for every flag of the architecture."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from redraft.model.errors import SettingsError, WeightsError
from redraft.model.network.layout import TOP, forms_of
from redraft.model.network.onnx_files import materialise
from redraft.model.network.onnx_graph import build
from redraft.model.network.onnx_linear import LinearMaps
from redraft.model.network.onnx_nodes import Nodes, model_of
from redraft.model.network.quantize import (
    VARIANTS,
    Stored,
    quantize_blocks,
    quantize_nibbles,
    quantize_rows,
    variant_named,
)
from support.models.onnx_models import (
    BASE,
    SHAPES,
    predictable,
    reference_for,
    relative,
    shaped,
    some_tokens,
    some_window,
    store,
    weights_for,
)
from support.models.reference import log_softmax

runtime = pytest.importorskip("redraft.model.runtime.onnx_backend", reason="needs onnxruntime")
pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")


@pytest.fixture(scope="module", params=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("variant", VARIANTS)
def test_graphs_pass_checker_and_inference(variant: str, shape: str, tmp_path: Path) -> None:
    config = shaped(shape)
    store(config, variant, tmp_path)
    for form in forms_of(config):
        onnx.checker.check_model(str(tmp_path / f"{form}.onnx"), full_check=True)
        model = onnx.load(str(tmp_path / f"{form}.onnx"), load_external_data=False)
        assert onnx.shape_inference.infer_shapes(model, check_type=True).graph.node


def test_building_twice_gives_the_same_bytes() -> None:
    for form in forms_of(BASE):
        one, two = build(BASE, "int8", form), build(BASE, "int8", form)
        left = one.model.SerializeToString(deterministic=True)
        assert left == two.model.SerializeToString(deterministic=True)


@pytest.mark.parametrize("count", [1, 2, 33, 150])
def test_the_causal_judgement_equals_the_reference(shape: str, count: int, tmp_path: Path) -> None:
    config = shaped(shape)
    sequence = runtime.OnnxBackend(store(config, "fp32", tmp_path), threads=1).open(256)
    tokens = some_tokens(config, count)
    found = sequence.score(tokens, logits=True)
    reference = reference_for(config, sequence.capacity)
    logits = reference.causal_logits(tokens)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    likeliest = np.sort(p, axis=-1)[:, : -TOP - 1 : -1]
    assert found.target_logprob.shape == (count,)
    assert np.allclose(found.target_logprob[:-1], reference.scores(tokens), rtol=1e-3, atol=1e-4)
    assert np.allclose(np.exp(found.top_logprob), likeliest, rtol=1e-3)
    assert np.array_equal(found.top, np.argsort(-found.logits, axis=-1, kind="stable")[:, :TOP])
    ids = predictable(config)
    assert relative(found.logits[:, ids], logits[:, ids]) < 1e-3


@pytest.mark.parametrize("cached", [0, 1, 70])
@pytest.mark.parametrize("placed", [0, 3])
def test_denoise_equals_the_reference(shape: str, cached: int, placed: int, tmp_path: Path) -> None:
    config = shaped(shape)
    sequence = runtime.OnnxBackend(store(config, "fp32", tmp_path), threads=1).open(256)
    tokens, window = some_tokens(config, cached), some_window(config, placed)
    sequence.extend(tokens)
    out = sequence.denoise(window, window[:0], logits=True)
    expected = reference_for(config, sequence.capacity).canvas_logits(tokens, window)
    ids = predictable(config)
    assert relative(out.logits[:, ids], expected[:, ids]) < 1e-3
    chances = np.exp(log_softmax(expected))
    assert np.array_equal(out.top[:, 0], expected.argmax(axis=1))
    assert np.allclose(np.exp(out.top_logprob[:, 0]), chances.max(axis=1), rtol=1e-3)


@pytest.mark.parametrize("variant", ["int8", "fp16"])
def test_quantised_variants_stay_near(shape: str, variant: str, tmp_path: Path) -> None:
    config = shaped(shape)
    store(config, variant, tmp_path)
    backend = runtime.OnnxBackend(tmp_path, provider="CPU", threads=1)
    sequence = backend.open(256)
    tokens, window = some_tokens(config, 60), some_window(config)
    sequence.extend(tokens)
    out = sequence.denoise(window, window[:0], logits=True)
    expected = reference_for(config, sequence.capacity).canvas_logits(tokens, window)
    ids = predictable(config)
    limit = {"int8": 0.06, "fp16": 0.005}[variant]
    assert relative(out.logits[:, ids], expected[:, ids]) < limit


def test_a_row_of_zeros_stays_one_in_int8(tmp_path: Path) -> None:
    """Its largest activation is 0, by which it is divided."""
    config = dataclasses.replace(BASE, adapter="none")
    weights, _ = weights_for(config)
    tokens = some_tokens(config, 12)
    weights["embed.weight"][tokens[::3]] = 0.0
    found = []
    for variant in ("int8", "fp32"):
        materialise(config, weights, weights, variant, tmp_path / variant)
        sequence = runtime.OnnxBackend(tmp_path / variant, threads=1).open(64)
        found.append(sequence.score(tokens, logits=True).logits[:, predictable(config)])
    assert relative(*found) < 0.06


@pytest.mark.parametrize("variant", VARIANTS)
def test_special_tokens_are_never_predicted_but_end_is(variant: str, tmp_path: Path) -> None:
    config = dataclasses.replace(BASE, tied=False, adapter="none")
    weights, _ = weights_for(config)
    head = np.zeros_like(weights["head.weight"])
    hidden_direction = np.ones(config.hidden, np.float32)
    head[: config.special_tokens] = hidden_direction * 0.5  # every special token, END included,
    head[config.special_tokens + 1 :] = -hidden_direction * 0.5  # or none of the others, wins
    materialise(config, weights | {"head.weight": head}, weights, variant, tmp_path)
    sequence = runtime.OnnxBackend(tmp_path, provider="CPU", threads=1).open(64)
    tokens = some_tokens(config, 9)
    sequence.extend(tokens)
    out = sequence.denoise(some_window(config), tokens[:0], logits=True)
    specials = set(range(config.special_tokens)) - {config.end_token}
    assert not specials & set(out.top[:, 0].tolist())
    assert config.end_token in out.top[:, 0]
    assert np.all(out.logits[:, sorted(specials)] < -1e8)


def test_tensors_that_do_not_differ_are_stored_once(tmp_path: Path) -> None:
    sizes = {}
    for adapter in ("none", "canvas"):
        config = dataclasses.replace(BASE, adapter=adapter)
        store(config, "fp32", tmp_path / adapter)
        sizes[adapter] = (tmp_path / adapter / "weights.bin").stat().st_size
    c = BASE
    block = c.hidden * (2 * c.heads + 2 * c.kv_heads) * c.head_dim + 3 * c.hidden * c.intermediate
    extra = sizes["canvas"] - sizes["none"]
    assert extra == pytest.approx(4 * c.layers * block, rel=0.1)


@pytest.mark.parametrize("variant", ["fp32", "int8", "fp16", "q4f16"])
@pytest.mark.parametrize("adapter", ["none", "masks"])
def test_causal_weights_have_one_graph(adapter: str, variant: str, tmp_path: Path) -> None:
    """Each graph is another copy of the weights in memory, on CUDA too."""
    more = SHAPES["masks"] if adapter == "masks" else {"adapter": adapter, "draft_after": 9}
    config = dataclasses.replace(BASE, **more, verifier="ar")
    folder = store(config, variant, tmp_path)
    assert {path.stem for path in folder.glob("*.onnx")} == {"causal"}


def test_a_failed_write_leaves_the_old_files(tmp_path: Path) -> None:
    store(BASE, "fp32", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    weights, canvas = weights_for(BASE)
    del canvas["blocks.1.mlp.down.weight"]
    with pytest.raises(WeightsError, match=r"blocks\.1\.mlp\.down"):
        materialise(BASE, weights, canvas, "int8", tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(WeightsError, match="could not be written"):
        store(BASE, "fp32", blocked / "model")


def test_unknown_variants_and_bad_heads_are_refused() -> None:
    with pytest.raises(SettingsError, match="int3"):
        build(BASE, "int3", "causal")
    with pytest.raises(WeightsError, match="24 dimensions"):
        build(dataclasses.replace(BASE, head_dim=24), "fp32", "causal")


def test_onnx_equals_torch(shape: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch (pip install '.[lab]')")
    from redraft.model.training.network import Network
    from support.models.torch_sequence import TorchSequence

    config = shaped(shape)
    context, canvas = weights_for(config)
    sequence = runtime.OnnxBackend(store(config, "fp32", tmp_path), threads=1).open(256)
    tokens, window = some_tokens(config, 41), some_window(config, 2)

    def torch_twin(weights: dict[str, np.ndarray], mask: np.ndarray) -> TorchSequence:
        network = Network(config, reach=sequence.capacity).eval()
        network.load(weights | {"mask_embedding": mask})
        return TorchSequence(network, sequence.capacity)

    mask = canvas["embed.weight"][config.mask_token]
    reader, writer = torch_twin(context, mask), torch_twin(canvas, mask)
    judged, twin = sequence.score(tokens), reader.score(tokens)
    assert np.allclose(judged.target_logprob, twin.target_logprob, rtol=1e-3, atol=1e-4)
    assert np.allclose(judged.top_logprob, twin.top_logprob, rtol=1e-3, atol=1e-4)
    assert np.array_equal(judged.top[:, 0], twin.top[:, 0])
    # The adapted weights write behind the cache that the plain weights read.
    writer._past, writer._tokens = reader._past, reader._tokens
    found, expected = (each.denoise(window, window[:0], logits=True) for each in (sequence, writer))
    ids = predictable(config)
    assert relative(found.logits[:, ids], expected.logits[:, ids]) < 1e-3
    assert np.array_equal(found.top[:, 0], expected.top[:, 0])


F32 = np.dtype(np.float32)


def random_matrix(outputs: int, inputs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-4, 4, (outputs, 1))
    return (rng.normal(size=(outputs, inputs)) * scale).astype(np.float32)


@given(st.integers(1, 9), st.integers(1, 130), st.sampled_from([16, 32, 64]), st.integers(0, 99))
def test_blocks_are_within_half_a_step(outputs: int, inputs: int, block: int, seed: int) -> None:
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_blocks(matrix, block)
    back = (values.astype(np.float32) - 128) * scales[..., None]
    back = back.reshape(outputs, -1)
    assert back.shape[1] % block == 0
    assert np.all(back[:, inputs:] == 0)
    step = np.repeat(scales, block, axis=1)[:, :inputs]
    assert np.all(np.abs(back[:, :inputs] - matrix) <= 0.5001 * step)


@given(st.integers(1, 9), st.integers(1, 130), st.integers(0, 99))
def test_nibbles_are_within_a_step_of_the_values(outputs: int, inputs: int, seed: int) -> None:
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_nibbles(matrix, 32)
    levels = np.stack([values & 15, values >> 4], axis=-1).reshape(outputs, -1, 32)
    back = ((levels.astype(np.float32) - 8) * scales[..., None]).reshape(outputs, -1)
    assert np.all(back[:, inputs:] == 0)
    step = np.abs(np.repeat(scales, 32, axis=1)[:, :inputs])
    assert np.all(np.abs(back[:, :inputs] - matrix) <= 1.0001 * step)
    largest = np.abs(matrix).argmax(axis=1)[:, None]
    met = [np.take_along_axis(side, largest, axis=1) for side in (back, matrix)]
    assert np.allclose(*met, rtol=1e-5)


@given(st.integers(1, 9), st.integers(1, 130), st.integers(0, 99))
def test_rows_err_by_half_a_step_and_no_sum_overflows(outputs: int, inputs: int, seed: int) -> None:
    """x86 without VNNI adds the products of two neighbours in 16 bits."""
    matrix = random_matrix(outputs, inputs, seed)
    values, scales = quantize_rows(matrix)
    assert values.shape == (inputs, outputs)
    products = 255 * values.astype(np.int64)
    pairs = products[: inputs // 2 * 2 : 2] + products[1::2]
    assert np.all(np.abs(pairs) < 1 << 15)
    assert np.all(np.abs(values.T * scales[:, None] - matrix) <= 0.5001 * scales[:, None])


def test_largest_values_are_kept_and_zeros_stay_zero() -> None:
    values, scales = quantize_rows(np.array([[1.0, -3.0, 0.5]], np.float32))
    assert values[1, 0] == -127
    assert scales[0] == pytest.approx(3.0 / 127)
    matrix = np.zeros((2, 32), np.float32)
    values, scales = quantize_blocks(matrix, 32)
    assert np.all(values == 128) and np.all(np.isfinite(scales)) and np.all(scales > 0)
    rows, scales = quantize_rows(matrix)
    assert np.all(rows == 0) and np.all(scales > 0)


@pytest.mark.parametrize("how", ["whole", "turned", "blocks", "nibbles", "rows"])
def test_tensors_have_the_promised_types_and_shapes(how: str) -> None:
    stored = Stored("m", ("a", "b"), how, (12, 40), F32, block=32)  # type: ignore[arg-type]
    weights = {"a": random_matrix(8, 40, 0), "b": random_matrix(4, 40, 1)}
    arrays = stored.encode(weights)
    assert {n: (a.dtype, a.shape) for n, a in arrays.items()} == stored.tensors()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({}, r"blocks\.7\.attn\.q\.weight.*redraft model pull"),
        ({"blocks.7.attn.q.weight": np.zeros((4, 9), np.float32)}, "shapes"),
        ({"blocks.7.attn.q.weight": np.zeros((5, 8), np.float32)}, "shapes"),
    ],
)
def test_a_missing_or_wrong_weight_is_refused(weights: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(WeightsError, match=said):
        Stored("m", ("blocks.7.attn.q.weight",), "turned", (4, 8), F32).encode(weights)


def test_an_unknown_variant_is_refused_with_choices() -> None:
    with pytest.raises(SettingsError, match=r"int4.*fp32, int8, fp16"):
        variant_named("int4")


def test_a_row_of_zeros_stays_one_under_changed_masks() -> None:
    rng, nodes = np.random.default_rng(3), Nodes()
    linear = LinearMaps(nodes, variant_named("int8"), mask_rank=8)
    linear.count("x")
    product = linear.without_scale("w", ["w"], "x", 64, 64)
    index = linear.index_of("rows")
    changed = linear.adapt_masks("w", "x", product, (64, 64), "rows", index)
    nodes.op("Identity", linear.with_scale(changed, product[1]), out="y")
    shapes = {"w.weight": (64, 64), "w.lora_a": (8, 64), "w.lora_b": (64, 8)}
    matrices = {name: rng.normal(size=each).astype(np.float32) for name, each in shapes.items()}
    arrays = [each.encode(matrices) for each in nodes.stored.values()]
    graph = helper.make_graph(
        nodes.nodes,
        "changed",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "n", 64]),
            helper.make_tensor_value_info("rows", TensorProto.INT64, ["g"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, "n", 64])],
        [
            *nodes.constants.values(),
            *(numpy_helper.from_array(a, name) for one in arrays for name, a in one.items()),
        ],
    )
    session = pytest.importorskip("onnxruntime").InferenceSession(
        model_of(graph).SerializeToString()
    )
    x = rng.normal(size=(1, 3, 64)).astype(np.float32)
    x[0, 1] = 0.0
    (y,) = session.run(None, {"x": x, "rows": np.array([0, 1])})
    wanted = x @ matrices["w.weight"].T
    wanted[:, :2] += x[:, :2] @ matrices["w.lora_a"].T @ matrices["w.lora_b"].T
    assert np.abs(y - wanted).max() < 0.02 * np.abs(wanted).max()
    assert not y[0, 1].any()
