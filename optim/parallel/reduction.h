// A reduction joins the numbers of all ranks: everything that is sent in a step follows its
// pattern.
//
// Every rank owns a chunk. First each rank gives every owner its addend of that chunk, then every
// owner gives the result to all. Many reductions travel in the same two exchanges.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/memory/buffer.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {

// The micro-batches, or parts, [begin, end) of the `all` of a batch, on which one rank works.
struct Parts {
  int begin = 0, end = 1, all = 1;

  int count() const { return end - begin; }
  // Divides all parts among the ranks; where there are more ranks than parts, some have none.
  static Parts of_rank(int rank, int ranks, int all) {
    return {rank * all / ranks, (rank + 1) * all / ranks, all};
  }
};

// A partition divides n elements among ranks: into equal chunks of whole bytes of bits, the last
// ones shorter or empty. The owner of a chunk adds up what the ranks have of it.
struct Partition {
  std::int64_t n;
  int ranks;

  std::int64_t chunk() const {
    const std::int64_t each = (n + ranks - 1) / ranks;
    return (each + 7) / 8 * 8;
  }
  std::int64_t begin(int rank) const { return std::min(n, rank * chunk()); }
  std::int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
};

// The bytes of a message to or from a rank, in memory that is kept from step to step.
class Message {
 public:
  // Loses what it held before.
  void resize(std::size_t bytes) {
    if (bytes > buffer_.size()) buffer_ = Buffer(bytes, Category::kWorkspace);
    size_ = bytes;
  }
  std::byte* data() const { return buffer_.as<std::byte>(); }
  std::span<std::byte> bytes() const { return buffer_.bytes().first(size_); }

 private:
  Buffer buffer_;
  std::size_t size_ = 0;
};

class Reduction {
 public:
  virtual ~Reduction() = default;

  // A byte that each rank tells all others beforehand, and the one that another rank told.
  virtual std::uint8_t note() const { return 0; }
  virtual void read_note(int /*rank*/, std::uint8_t /*note*/) {}

  // Sizes are known to both sides. Addends and results of the rank itself are handed over too,
  // after it has written all of them; they are read in the order of the ranks.
  virtual std::int64_t addend_bytes(int from, int to) const = 0;
  virtual void write_addend(int to, std::byte* out) = 0;
  virtual void read_addend(int from, const std::byte* in) = 0;
  virtual std::int64_t result_bytes(int owner) const = 0;
  virtual void write_result(std::byte* out) = 0;
  virtual void read_result(int owner, const std::byte* in) = 0;
};

// Carries out reductions; keeps the memory of their messages from step to step.
class Reducer {
 public:
  explicit Reducer(Communicator& ranks);

  // Carries out all of them in two exchanges, and one of notes before.
  void reduce(std::span<Reduction* const> reductions);

 private:
  void exchange_notes(std::span<Reduction* const> reductions);
  void scatter_addends(std::span<Reduction* const> reductions);
  void gather_results(std::span<Reduction* const> reductions);

  std::span<const std::span<std::byte>> places();

  Communicator* ranks_;
  Message own_;
  std::vector<Message> sent_, received_;  // by rank
  std::vector<std::span<const std::byte>> sent_views_;
  std::vector<std::span<std::byte>> received_views_;
};

// Returns the bytes that `rank` of `count` sends for a reduction, but for the notes.
std::int64_t bytes_sent(const Reduction& reduction, int rank, int count);

}  // namespace tritgrad
