// What all ranks have, joined: the common pattern of everything that is sent in a step.
//
// Every rank owns a chunk. First each rank gives every owner its share of that chunk, then every
// owner gives the result to all. Many reductions travel in the same two exchanges.
#pragma once

#include <span>
#include <vector>

#include "optim/parallel/communicator.h"
#include "optim/parallel/message.h"

namespace tritgrad {

class Reduction {
 public:
  virtual ~Reduction() = default;

  // A byte that each rank tells all others beforehand, and what they told.
  virtual std::uint8_t note() const { return 0; }
  virtual void read_note(int /*rank*/, std::uint8_t /*note*/) {}

  // Sizes are known to both sides. Shares and results of the rank itself are handed over too;
  // they are read in the order of the ranks.
  virtual std::int64_t share_bytes(int from, int to) const = 0;
  virtual void write_share(int to, std::byte* out) = 0;
  virtual void read_share(int from, const std::byte* in) = 0;
  virtual std::int64_t result_bytes(int owner) const = 0;
  virtual void write_result(std::byte* out) = 0;
  virtual void read_result(int owner, const std::byte* in) = 0;
};

// Carries out reductions; keeps the memory of their messages from step to step.
class Reducer {
 public:
  explicit Reducer(Communicator& ranks);

  // All of them, in two exchanges and one of notes.
  void reduce(std::span<Reduction* const> reductions);

 private:
  void exchange_notes(std::span<Reduction* const> reductions);
  void exchange_shares(std::span<Reduction* const> reductions);
  void gather_results(std::span<Reduction* const> reductions);

  Communicator* ranks_;
  std::span<const std::span<std::byte>> places();

  Message own_;
  std::vector<Message> sent_, received_;  // by rank
  std::vector<std::span<const std::byte>> sent_views_;
  std::vector<std::span<std::byte>> received_views_;
};

// Bytes that `rank` of `count` sends for it, but for the notes.
std::int64_t bytes_sent(const Reduction& reduction, int rank, int count);

}  // namespace tritgrad
