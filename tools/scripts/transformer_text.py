"""What tools/scripts/bench_vs_torch.py reads in the names of transformers."""


def parse_transformer(model):
    """The sizes in llama:LAYERS,WIDTH[:heads=H][:ff=F][:context=T], with tritgrad's defaults; None
    for the name of another network. Raises ValueError, with a sentence, for other options."""
    if not model.startswith("llama:"):
        return None
    sizes, *options = model[len("llama:"):].split(":")
    try:
        layers, width = (int(size) for size in sizes.split(","))
        given = {key: int(value) for key, value in (option.split("=") for option in options)}
    except ValueError:
        raise ValueError("model '{}': expected whole numbers, as in llama:4,256:ff=512".format(
            model))
    spec = {"layers": layers, "width": width, "heads": max(1, width // 64),
            "ff": -(-8 * width // (3 * 256)) * 256, "context": 128}
    unknown = sorted(set(given) - {"heads", "ff", "context"})
    if unknown:
        raise ValueError("model '{}': '{}' has no counterpart in PyTorch here; leave it out".format(
            model, unknown[0]))
    return {**spec, **given}
