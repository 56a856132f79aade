// The watch on updates of a matrix that rounding loses.
//
// An update that is too small for its format is lost, and the next one starts from the same place:
// too small a learning rate trains nothing, in silence. So on some steps of a run the masters of a
// sample of elements are compared before and after the update. Where rounding is to nearest, an
// element moves if its master changes. Where chance rounds, or the momentum of ECO carries what
// rounding loses, small updates move masters rarely, but none is lost; there an element counts as
// moved if its update is large enough to do so now and then. Elements without any update, those
// behind an input that is always 0 say, have lost nothing and do not count.
#pragma once

#include <cstdint>

#include "engine/parameter.h"
#include "optim/eco.h"

namespace tritgrad {

// The effect of the watched steps on one matrix.
struct Movement {
  const Parameter* parameter;
  double largest_update;  // |lr * direction|, of the sample
  double moved;           // the share of the elements with updates that some update moved, 0 to 1
};

// A matrix of which a smaller share has moved does not train.
inline constexpr double kStalledShare = 0.01;

class StalledUpdates {
 public:
  struct Element {
    float master, direction;  // before the update
    bool updated, moved;      // in some step
  };
  // The sample of one matrix has at most so many elements. 4096 tell a moved fraction of
  // kStalledShare with a standard deviation of sqrt(0.01 * 0.99 / 4096) = 0.0016.
  static constexpr std::int64_t kMostElements = 4096;
  // Watching one matrix takes at most so much memory: 4096 elements of 12 bytes are 48 KiB.
  static constexpr std::int64_t kMaxBytes =
      kMostElements * static_cast<std::int64_t>(sizeof(Element));

  // Watches nothing.
  StalledUpdates() = default;
  // The sample is all of a small matrix, and of a larger one pieces of blocks, evenly spaced over
  // its rows and columns. It depends on the shape alone.
  StalledUpdates(const ParameterSpec& spec, EcoForm eco);

  // Returns whether there is anything left to find out. Where masters are compared, that ends when
  // all elements have moved. Where updates are carried it ends when kStalledShare of them have,
  // because the others are carried too; a single one says little, as anything moves a float near
  // zero.
  bool is_open() const { return sample_.size() > 0; }

  // Notes what a block is before an update by lr * direction. Threads may note different blocks at
  // the same time.
  void before_update(const Storage& storage, const Block& block, const float* direction);
  // Compares, when all blocks of the step have been updated. Frees the memory when nothing is left
  // to find out.
  void after_update(const Storage& storage, double lr);

  Movement movement(const Parameter& parameter) const { return {&parameter, largest_, moved_}; }

 private:
  // Elements [begin, end) of a block; none if the block is not in the sample.
  struct Piece {
    Element* elements = nullptr;
    std::int64_t begin = 0, end = 0;
  };

  Piece piece_of(const Block& block) const;
  bool moves(const Element& before, float after, float lr) const;

  bool is_carried_ = false;       // by chance or by ECO
  float smallest_update_ = 0.0f;  // that chance carries, in formats that count in levels
  std::int64_t blocks_per_row_ = 1;
  std::int64_t stride_ = 1;  // every so many blocks, in row-major order, one is in the sample
  std::int64_t piece_ = 1;   // elements of a block in the sample
  Buffer sample_;            // Element
  double largest_ = 0.0, moved_ = 1.0;
};

}  // namespace tritgrad
