"""PyTorch's part of tools/scripts/seconds_to_accuracy.py, in a process of its own; prints JSON.

    torch_training.py SETTINGS        JSON: data, folder, model, kind, layout, pixels, augment,
                                      label_smoothing, batch, lr, epochs, seed, val, mark, steps

It trains a network of torch_networks.py, validates after every epoch, stops where the accuracy is
at the mark or above, or after so many steps, and scores the test rows once. What is not PyTorch's
own is as tritgrad has it: the rows of each part, standardised pixels, random crops and flips,
smoothed labels, and a rate that rises for 3 % of the steps and falls along half a cosine.
"""

import json
import math
import sys

import torch
from torch.nn.functional import cross_entropy
from torch_data import read_images, split_rows
from torch_networks import make_network
from torch_step import core_name, loaded_blas

WARMUP = 0.03
SCORED_TOGETHER = 256


class Images:
    """Batches of standardised images out of bytes, which take a quarter of the memory of floats."""

    def __init__(self, settings):
        self.settings = settings
        pixels, self.shape, labels, test = read_images(settings["data"], settings["folder"])
        self.pixels, self.labels = torch.from_numpy(pixels), torch.from_numpy(labels)
        train, val = split_rows(labels, test, settings["val"])
        self.train, self.val, self.test = map(torch.from_numpy, (train, val, test))
        self.fit()

    def fit(self):
        """Mean and deviation of all training pixels, by how often each byte occurs among them."""
        images = self.pixels[:-1].view(len(self.labels), -1)
        counts = sum(images[rows].flatten().bincount(minlength=256).double()
                     for rows in self.train.split(1000))
        values = torch.arange(256, dtype=torch.float64)
        values = values.sqrt() if self.settings["pixels"] == "sqrt" else values
        self.mean = float((counts * values).sum() / counts.sum())
        square = float((counts * (values - self.mean) ** 2).sum() / counts.sum())
        self.inverse_std = 1.0 / math.sqrt(square)

    def batch(self, rows, augments):
        height, width, channels = self.shape
        y, x = torch.arange(height).view(1, -1, 1), torch.arange(width).view(1, 1, -1)
        outside = None
        if augments:
            crop, n = self.settings["augment"]["crop"], (len(rows), 1, 1)
            if self.settings["augment"]["flip"]:
                x = torch.where(torch.rand(n) < 0.5, width - 1 - x, x)
            y = y + torch.randint(-crop, crop + 1, n)
            x = x + torch.randint(-crop, crop + 1, n)
            outside = (y < 0) | (y >= height) | (x < 0) | (x >= width)
        at = (rows.view(-1, 1, 1) * height + y) * width + x
        if augments:
            at.masked_fill_(outside, len(self.pixels) - 1)  # a pixel of 0
        values = self.pixels.index_select(0, at.flatten()).float()
        if self.settings["pixels"] == "sqrt":
            values.sqrt_()
        values.sub_(self.mean).mul_(self.inverse_std)
        if not self.settings["model"].startswith("conv:"):
            return values.view(len(rows), -1)
        images = values.view(len(rows), height, width, channels).permute(0, 3, 1, 2)
        return images if self.settings["layout"] == "channels-last" else images.contiguous()


def rate_factor(step, steps):
    warm = round(WARMUP * steps)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def score(network, images, rows):
    network.eval()
    correct = 0
    with torch.inference_mode():
        for part in rows.split(SCORED_TOGETHER):
            guesses = network(images.batch(part, False)).argmax(1)
            correct += int((guesses == images.labels[part]).sum())
    network.train()
    return correct / len(rows)


def train(settings, network, images):
    """Returns the validation accuracy after each epoch."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings["lr"], foreach=True)
    epoch_steps = len(images.train) // settings["batch"]
    epoch_steps += len(images.train) % settings["batch"] > 1  # batch norm needs two rows
    curve, done = [], 0
    while len(curve) < settings["epochs"] and (not curve or curve[-1] < settings["mark"]):
        order = images.train[torch.randperm(len(images.train))]
        for rows in order.split(settings["batch"])[:epoch_steps]:
            rate = settings["lr"] * rate_factor(done, settings["epochs"] * epoch_steps)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(network(images.batch(rows, settings["augment"] is not None)),
                          images.labels[rows],
                          label_smoothing=settings["label_smoothing"]).backward()
            optimizer.step()
            done += 1
            if done == settings["steps"]:
                return curve
        curve.append(score(network, images, images.val))
    return curve


def main():
    settings = json.loads(sys.argv[1])
    torch.manual_seed(settings["seed"])
    torch.set_num_threads(1)
    images = Images(settings)
    network, _, _ = make_network(settings["model"], settings["kind"], 2)
    if settings["layout"] == "channels-last":
        network = network.to(memory_format=torch.channels_last)
    curve = train(settings, network, images)
    print(json.dumps({"val": curve, "test": score(network, images, images.test),
                      "rows": [len(images.train), len(images.val), len(images.test)],
                      "parameters": sum(each.numel() for each in network.parameters()),
                      "torch": torch.__version__, "blas": loaded_blas(), "core": core_name()}))


if __name__ == "__main__":
    main()
