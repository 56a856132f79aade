// Whether the updates of a parameter get past rounding.
//
// An update below the dead zone of its element (Storage::dead_zone) is lost, and the next one
// starts from the same place: too small a learning rate trains nothing, in silence. Under ECO,
// whose momentum carries what rounding loses, that is so of what fp32 arithmetic loses. So the
// updates of some steps are held against the dead zones of what they move. Elements without any
// update, behind an input that is always 0 say, have lost nothing and do not count.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/parameter.h"
#include "optim/eco.h"

namespace tritgrad {

// What was found of one parameter.
struct Reach {
  const Parameter* parameter;
  double update;   // the largest |lr * direction| that was watched, until all elements could move
  double movable;  // of the elements that had updates, the share that some update could move
};

// A matrix of which a smaller share can move does not train.
inline constexpr double kStalledShare = 0.01;

// Keeps two bits for each element of a sample, at most 65536 elements: a small parameter is watched
// as a whole, of a larger one blocks evenly spaced over its rows and columns are. The shape alone
// chooses them. Where chance or the momentum of ECO carries all updates but the tiniest, no bits
// are kept: all can move as soon as kStalledShare of what one step updates can. One alone says
// nothing there, as floats near zero are moved by next to anything.
class ReachWatch {
 public:
  // Bytes that watching one parameter takes at most.
  static constexpr std::int64_t kMaxBytes = 16384;

  // What one part of a pass has seen.
  struct Seen {
    float peak = 0.0f;  // largest |direction|
    // Where no bits are kept: elements with an update, and with one that was large enough.
    std::int64_t updated = 0, moved = 0;

    Seen& operator+=(const Seen& other);
  };

  // Watches nothing.
  ReachWatch() = default;
  ReachWatch(const ParameterSpec& spec, EcoForm eco);
  // Whether bits are kept of the elements, which takes memory.
  static bool keeps_bits(const ParameterSpec& spec, EcoForm eco);

  // Whether there is anything left to find out.
  bool is_open() const { return is_open_; }
  // What a step of `lr` is about to do to a block. Threads may look at different blocks.
  void look(const Storage& storage, const Block& block, const float* direction, float lr,
            Seen& seen);
  // After all blocks of a step, of which `lr` > 0 is the rate. Once all elements could move,
  // nothing is left to watch, and the bits are freed.
  void end_step(const Seen& seen, double lr);

  // Nothing if the parameter is not watched.
  std::optional<Reach> reach(const Parameter& parameter) const;

 private:
  void read_zone(const Storage& storage, const Block& block, float* zone) const;
  double movable() const;

  bool wanted_ = false, is_open_ = false;
  bool eco_ = false, keeps_bits_ = false;
  double peak_ = 0.0;
  double best_share_ = 0.0;  // where no bits are kept: of one step's updates, that were enough
  // Blocks are numbered in row-major order; every stride_-th is in the sample.
  std::int64_t blocks_per_row_ = 1, stride_ = 1;
  std::int64_t elements_ = 0;     // of the sample
  std::int64_t block_bytes_ = 0;  // of a block's bits
  // A bit for each element of the sample: it had an update; one was large enough to move it.
  Buffer updated_, moved_;
};

}  // namespace tritgrad
