// Pooling: values, ties, odd edges, gradients.
#include <limits>

#include "engine/memory/parallel.h"
#include "ops/pool.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_pool {
namespace {

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

std::size_t place(const ImageShape& image, std::int64_t n, std::int64_t line, std::int64_t column,
                  std::int64_t channel) {
  return static_cast<std::size_t>(
      ((n * image.height + line) * image.width + column) * image.channels + channel);
}

Values max_reference(const Values& x, const ImageShape& image, std::int64_t images) {
  Values y;
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t line = 0; line + 1 < image.height; line += 2) {
      for (std::int64_t column = 0; column + 1 < image.width; column += 2) {
        for (std::int64_t c = 0; c < image.channels; ++c) {
          Complex largest = x[place(image, n, line, column, c)];
          for (int k = 1; k < 4; ++k) {
            const Complex other = x[place(image, n, line + k / 2, column + k % 2, c)];
            if (other.real() > largest.real()) largest = other;
          }
          y.push_back(largest);
        }
      }
    }
  }
  return y;
}

Values average_reference(const Values& x, const ImageShape& image, std::int64_t images) {
  Values y;
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t c = 0; c < image.channels; ++c) {
      Complex sum = 0.0;
      for (std::int64_t line = 0; line < image.height; ++line) {
        for (std::int64_t column = 0; column < image.width; ++column) {
          sum += x[place(image, n, line, column, c)];
        }
      }
      y.push_back(sum / static_cast<double>(image.height * image.width));
    }
  }
  return y;
}

// y and dx where the gradient of y is 1, 2, 3, ...
struct Pooled {
  std::vector<float> y, dx;
  friend bool operator==(const Pooled&, const Pooled&) = default;
};
template <typename Op>
Pooled pool(const Op& op, const std::vector<float>& numbers, const ImageShape& image,
            bool used_twice = false) {
  Tape tape;
  const Var x =
      tape.variable({static_cast<std::int64_t>(numbers.size()) / image.channels, image.channels});
  std::copy(numbers.begin(), numbers.end(), x.value.data);
  const Var y = op(tape, x, image);
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {}, [&tape, x, y, used_twice] {
    if (used_twice) tape.grad_to(x).fill(100.0f);
    const Tensor dy = tape.target(y).grad;
    for (std::int64_t i = 0; i < dy.size(); ++i) dy.data[i] = static_cast<float>(i + 1);
  });
  tape.backward(loss, [](Parameter&) {});
  return {floats(y.value), floats(x.grad())};
}

}  // namespace

void for_each_pool_case(const VisitOpCase& visit) {
  // Odd and even edges, one channel and several, several images, a single pixel.
  for (const auto& [image, images] : std::vector<std::pair<ImageShape, std::int64_t>>{
           {{4, 6, 3}, 2}, {{5, 3, 1}, 2}, {{2, 7, 5}, 1}, {{2, 2, 1}, 3}}) {
    const ImageShape shape = image;
    const std::int64_t n = images;
    OpCase max{"max_pool",
               {},
               [=](Tape& t, const Var& x) { return max_pool(t, x, shape); },
               [=](const Values& v) { return asymmetric_scalar(max_reference(v, shape, n)); }};
    max.x_shape = {n * shape.height * shape.width, shape.channels};
    visit(max);
    OpCase average{
        "average_pool",
        {},
        [=](Tape& t, const Var& x) { return average_pool(t, x, shape); },
        [=](const Values& v) { return asymmetric_scalar(average_reference(v, shape, n)); }};
    average.x_shape = max.x_shape;
    visit(average);
  }
}

TEST_CASE("pool: the largest of four, the first of equals; an odd edge is dropped") {
  const ImageShape image{3, 5, 1};
  const std::vector<float> x{1, 4, 7, 7, 9,   //
                             4, 0, 7, 7, 9,   //
                             9, 9, 9, 9, 9};  //
  const Pooled max = pool(max_pool, x, image);
  CHECK(max.y == std::vector<float>{4, 7});
  CHECK(max.dx == std::vector<float>{0, 1, 2, 0, 0,  //
                                     0, 0, 0, 0, 0,  //
                                     0, 0, 0, 0, 0});
  // Added to what is there already.
  CHECK(pool(max_pool, x, image, true).dx == std::vector<float>{100, 101, 102, 100, 100,  //
                                                                100, 100, 100, 100, 100,  //
                                                                100, 100, 100, 100, 100});
  const Pooled average = pool(average_pool, {1, 10, 3, 30, 5, 50, 7, 70}, {2, 2, 2});
  CHECK(average.y == std::vector<float>{4, 40});
  CHECK(average.dx == std::vector<float>{0.25f, 0.5f, 0.25f, 0.5f, 0.25f, 0.5f, 0.25f, 0.5f});
}

TEST_CASE("pool: NaN stays NaN wherever it is") {
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> x{1, 2, 3, 4};
    x[i] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(pool(max_pool, x, {2, 2, 1}).y[0]));
  }
}

TEST_CASE("pool: the same bits for any number of threads") {
  const ImageShape image{33, 31, 40};  // more numbers than one unit of work has
  const std::vector<float> x = numbers(5 * image.size(), 4);
  set_thread_count(1);
  const Pooled max = pool(max_pool, x, image), average = pool(average_pool, x, image);
  for (int threads : {2, 3}) {
    set_thread_count(threads);
    CHECK(pool(max_pool, x, image) == max);
    CHECK(pool(average_pool, x, image) == average);
  }
  set_thread_count(0);
}

TEST_CASE("pool: what is no image, or too small, is refused") {
  Tape tape;
  const Var x = tape.variable({6, 2});
  CHECK(refusal([&] {
          max_pool(tape, x, {1, 6, 2});
        }) == "max_pool: images have 1 x 6 pixels, at least 2 x 2 needed; pool less often");
  CHECK(refusal([&] {
          max_pool(tape, x, {2, 2, 2});
        }) ==
        "max_pool: x has shape [6 x 2], which is no number of images of 2 x 2 pixels of 2 "
        "channels");
  CHECK(contains(refusal([&] {
                   average_pool(tape, x, {2, 3, 1});
                 }),
                 "average_pool: x has shape [6 x 2], which is no number of images of 2 x 3"));
}

}  // namespace tritgrad::test::test_pool
