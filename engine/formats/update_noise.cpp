#include "engine/formats/update_noise.h"

namespace tritgrad {
namespace {

// Whether no partial quotient of numerator / 2^16 is above `most`.
constexpr bool has_small_quotients(std::uint32_t numerator, std::uint32_t most) {
  std::uint32_t a = 65536, b = numerator;
  while (b != 0) {
    if (a / b > most) return false;
    const std::uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return true;
}

constexpr UpdateNoiseTable make_update_noise_table() {
  UpdateNoiseTable table{};
  std::uint32_t alpha = 1;
  for (std::size_t place = 0; place < UpdateNoiseTable::kPlaces; ++place, alpha += 2) {
    while (!has_small_quotients(alpha, 4)) alpha += 2;
    table.alpha[place] = static_cast<std::uint16_t>(alpha);
    table.start[place] = random_u16({0, random_stream("update noise"), 0}, place);
  }
  return table;
}

std::uint16_t noise_of_step(std::uint32_t step, std::size_t place) {
  return static_cast<std::uint16_t>(kUpdateNoise.start[place] + kUpdateNoise.alpha[place] * step);
}

}  // namespace

constinit const UpdateNoiseTable kUpdateNoise = make_update_noise_table();

std::uint16_t update_noise(const RandomKey& key, std::uint64_t block, std::size_t place) {
  return static_cast<std::uint16_t>(noise_of_step(key.step, place) +
                                    update_noise_offset(key, block));
}

std::array<std::uint32_t, UpdateNoiseTable::kPlaces> update_noise_of_step(std::uint32_t step) {
  std::array<std::uint32_t, UpdateNoiseTable::kPlaces> noise;
  for (std::size_t place = 0; place < noise.size(); ++place) {
    noise[place] = as_fraction(noise_of_step(step, place));
  }
  return noise;
}

}  // namespace tritgrad
