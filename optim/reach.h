// Whether the updates of a parameter get past rounding to nearest.
//
// An update below the dead zone of its element (Storage::dead_zone) is lost, and the next one
// starts from the same place: too small a learning rate trains nothing, in silence. So the updates
// of some steps are held against the dead zones of what they move. Elements without any update,
// behind an input that is always 0 say, have lost nothing and do not count.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/parameter.h"
#include "optim/eco.h"

namespace tritgrad {

// What was found of one parameter.
struct Reach {
  const Parameter* parameter;
  double update;   // the largest |lr * direction| in watched steps
  double movable;  // of the elements that had updates, the share that some update could move
};

// A matrix of which a smaller share can move does not train.
inline constexpr double kStalledShare = 0.01;

class ReachWatch {
 public:
  // What one part of a pass has seen.
  struct Seen {
    float peak = 0.0f;  // largest |direction|
    std::int64_t updated = 0, moved = 0;

    Seen& operator+=(const Seen& other);
  };

  // Watches nothing.
  ReachWatch() = default;
  // Of formats that round as their spec says, two bits are kept for each element. Formats as fine
  // as fp32 are judged by one step at a time, which takes no memory, and pass for movable as soon
  // as a step moves more than kStalledShare: only a learning rate that trains nothing at all is too
  // small for them.
  ReachWatch(const FormatSpec& format, const Shape& shape);

  // Chance and the momentum of ECO carry every update; vectors are left out.
  static bool is_wanted(const ParameterSpec& spec, EcoForm eco);

  // Whether there is anything left to find out.
  bool is_open() const { return wanted_ && !settled_; }
  // What a step of `lr` is about to do to a block. Threads may look at blocks of different rows.
  void look(const Storage& storage, const Block& block, const float* direction, float lr,
            Seen& seen);
  // After all blocks of a step, of which `lr` > 0 is the rate.
  void end_step(const Seen& seen, double lr);

  // Nothing if the parameter is not watched.
  std::optional<Reach> reach(const Parameter& parameter) const;

 private:
  void look_at_elements(const Storage& storage, const Block& block, const float* direction,
                        float lr);
  double movable() const;

  bool wanted_ = false, settled_ = false;
  double peak_ = 0.0;
  std::optional<double> best_step_;  // without bits: the largest share that a step has moved
  // A bit for each element, rows on bytes: it had an update; one was large enough to move it.
  Buffer updated_, moved_;
  std::int64_t elements_ = 0, row_bytes_ = 0;
};

}  // namespace tritgrad
