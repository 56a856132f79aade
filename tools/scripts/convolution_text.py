"""What tools/scripts/bench_vs_torch.py reads in the names of convolutional networks."""

import re


def parse_convolutional(model):
    """Image and layers of conv:HEIGHTxWIDTHxCHANNELS-LAYER-...-OUTPUTS, in tritgrad's notation: a
    width, or WIDTH/2 with a stride of 2, M, R or FWIDTH. Returns {"image": (height, width,
    channels), "layers": [(kind, width, stride)], "outputs": n}, kind being a letter of CMRF; None
    for the name of another network. Raises ValueError, with a sentence, for what it cannot read."""
    if not model.startswith("conv:"):
        return None
    first, *parts = model[len("conv:"):].split("-")
    image = re.fullmatch(r"(\d+)x(\d+)x(\d+)", first)
    if not image or len(parts) < 2 or not parts[-1].isdigit():
        raise ValueError("model '{}': expected image, layers and outputs, as in "
                         "conv:32x32x3-32-M-64-M-10".format(model))
    return {"image": tuple(int(side) for side in image.groups()),
            "layers": [parse_layer(part, model) for part in parts[:-1]], "outputs": int(parts[-1])}


def parse_layer(part, model):
    layer = re.fullmatch(r"([MR])|F(\d+)|(\d+)(/2)?", part)
    if not layer:
        raise ValueError("model '{}': '{}' has no counterpart in PyTorch here; expected a width, "
                         "WIDTH/2, M, R or FWIDTH".format(model, part))
    letter, dense, width, half = layer.groups()
    if letter:
        return letter, 0, 1
    return ("F", int(dense), 1) if dense else ("C", int(width), 2 if half else 1)
