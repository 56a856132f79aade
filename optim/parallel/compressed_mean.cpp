#include "optim/parallel/compressed_mean.h"

#include "engine/kernels/reductions.h"

namespace tritgrad {

CompressedMean::CompressedMean(const Communicator& ranks, Compression compression, std::int64_t n)
    : compression_(compression),
      partition_{n, ranks.size()},
      rank_(ranks.rank()),
      worker_error_(static_cast<std::size_t>(n) * sizeof(float), Category::kResiduals),
      server_error_(static_cast<std::size_t>(partition_.size(rank_)) * sizeof(float),
                    Category::kResiduals),
      decoded_(server_error_.size(), Category::kWorkspace) {}

void CompressedMean::attach(float* x, const std::uint8_t* used) {
  x_ = x;
  used_ = used;
  kernels().reductions.add_scaled(worker_error_.as<float>(), x, 1.0f, partition_.n);
}

void CompressedMean::write_share(int to, std::byte* out) {
  compress(compression_, worker_error_.as<float>() + partition_.begin(to), partition_.size(to),
           used(to), out);
}

void CompressedMean::read_share(int /*from*/, const std::byte* in) {
  const std::int64_t own = partition_.size(rank_);
  decompress(compression_, in, own, used(rank_), decoded_.as<float>());
  kernels().reductions.add_scaled(server_error_.as<float>(), decoded_.as<float>(),
                                  1.0f / static_cast<float>(partition_.ranks), own);
}

void CompressedMean::write_result(std::byte* out) {
  compress(compression_, server_error_.as<float>(), partition_.size(rank_), used(rank_), out);
}

void CompressedMean::read_result(int owner, const std::byte* in) {
  decompress(compression_, in, partition_.size(owner), used(owner), x_ + partition_.begin(owner));
}

}  // namespace tritgrad
