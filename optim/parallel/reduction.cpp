#include "optim/parallel/reduction.h"

namespace tritgrad {
namespace {

// Makes room for size(reduction) bytes of each.
template <typename Size>
void make_room(Message& message, std::span<Reduction* const> reductions, const Size& size) {
  std::int64_t bytes = 0;
  for (const Reduction* reduction : reductions) bytes += size(*reduction);
  message.resize(static_cast<std::size_t>(bytes));
}

// Calls body(reduction, place) for each that has anything in a message, with its place there.
template <typename Size, typename Body>
void for_each_place(std::span<Reduction* const> reductions, std::byte* place, const Size& size,
                    const Body& body) {
  for (Reduction* reduction : reductions) {
    const std::int64_t bytes = size(*reduction);
    if (bytes > 0) body(*reduction, place);
    place += bytes;
  }
}

}  // namespace

Reducer::Reducer(Communicator& ranks)
    : ranks_(&ranks),
      sent_(static_cast<std::size_t>(ranks.size())),
      received_(static_cast<std::size_t>(ranks.size())),
      sent_views_(static_cast<std::size_t>(ranks.size())),
      received_views_(static_cast<std::size_t>(ranks.size())) {}

std::span<const std::span<std::byte>> Reducer::places() {
  for (std::size_t r = 0; r < received_.size(); ++r) received_views_[r] = received_[r].bytes();
  return received_views_;
}

void Reducer::reduce(std::span<Reduction* const> reductions) {
  exchange_notes(reductions);
  scatter_addends(reductions);
  gather_results(reductions);
}

void Reducer::exchange_notes(std::span<Reduction* const> reductions) {
  own_.resize(reductions.size());
  std::byte* own = own_.data();
  for (const Reduction* reduction : reductions) *own++ = static_cast<std::byte>(reduction->note());
  for (Message& message : received_) message.resize(reductions.size());
  ranks_->all_gather(own_.bytes(), places());
  for (int r = 0; r < ranks_->size(); ++r) {
    const std::byte* notes = received_[static_cast<std::size_t>(r)].data();
    for (Reduction* reduction : reductions) {
      reduction->read_note(r, std::to_integer<std::uint8_t>(*notes++));
    }
  }
}

void Reducer::scatter_addends(std::span<Reduction* const> reductions) {
  const int here = ranks_->rank();
  const auto from = [here](int rank) {
    return [rank, here](const Reduction& one) { return one.addend_bytes(rank, here); };
  };
  for (int r = 0; r < ranks_->size(); ++r) {
    Message& message = sent_[static_cast<std::size_t>(r)];
    const auto to = [&](const Reduction& one) { return one.addend_bytes(here, r); };
    make_room(message, reductions, to);
    for_each_place(reductions, message.data(), to,
                   [&](Reduction& one, std::byte* place) { one.write_addend(r, place); });
    make_room(received_[static_cast<std::size_t>(r)], reductions, from(r));
  }
  for (std::size_t r = 0; r < sent_.size(); ++r) sent_views_[r] = sent_[r].bytes();
  ranks_->exchange(sent_views_, places());
  for (int r = 0; r < ranks_->size(); ++r) {
    for_each_place(reductions, received_[static_cast<std::size_t>(r)].data(), from(r),
                   [&](Reduction& one, const std::byte* place) { one.read_addend(r, place); });
  }
}

void Reducer::gather_results(std::span<Reduction* const> reductions) {
  const auto of = [](int owner) {
    return [owner](const Reduction& one) { return one.result_bytes(owner); };
  };
  make_room(own_, reductions, of(ranks_->rank()));
  for_each_place(reductions, own_.data(), of(ranks_->rank()),
                 [](Reduction& one, std::byte* place) { one.write_result(place); });
  for (int r = 0; r < ranks_->size(); ++r) {
    make_room(received_[static_cast<std::size_t>(r)], reductions, of(r));
  }
  ranks_->all_gather(own_.bytes(), places());
  for (int r = 0; r < ranks_->size(); ++r) {
    for_each_place(reductions, received_[static_cast<std::size_t>(r)].data(), of(r),
                   [&](Reduction& one, const std::byte* place) { one.read_result(r, place); });
  }
}

std::int64_t bytes_sent(const Reduction& reduction, int rank, int count) {
  std::int64_t bytes = (count - 1) * reduction.result_bytes(rank);
  for (int r = 0; r < count; ++r) {
    if (r != rank) bytes += reduction.addend_bytes(rank, r);
  }
  return bytes;
}

}  // namespace tritgrad
