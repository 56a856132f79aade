// Random changes of training images that leave their labels true.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/dataset.h"
#include "engine/random.h"

namespace tritgrad {

struct Augmentation {
  // By up to so many pixels along both axes, every distance alike; what comes in is 0 in the units
  // of the data, the background of MNIST and black elsewhere. It is a random crop of the image with
  // so many pixels of 0 around it.
  std::int64_t shift = 0;
  bool flip = false;  // left and right change places, with probability 1/2

  bool changes_anything() const { return shift > 0 || flip; }
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

// "shift=N" or "crop=N", which are the same; "flip"; or both kinds with a comma between them; ""
// and "none" are none. Throws Error that names the part that cannot be read.
Augmentation parse_augmentation(const std::string& text);

// The text that parse_augmentation() reads; equal augmentations give equal texts.
std::string to_text(const Augmentation& augmentation);

// Throws Error when `dataset` holds no images, or images that a shift could leave empty.
void check_augmentation(const Augmentation& augmentation, const Dataset& dataset);

// Changes `image` in place, by numbers that are a function of (key, index) alone.
void augment(float* image, const ImageShape& shape, const Augmentation& augmentation,
             const RandomKey& key, std::uint64_t index);

}  // namespace tritgrad
