#include "ops/products/integer_convolution.h"

#include "engine/memory/parallel.h"
#include "ops/products/trit_panels.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kDecodingTrit = 8;  // cost, in products of bytes

// Returns the trits of W, row by row, in scratch.
const std::int8_t* decode_matrix(Tape& tape, const LinearOperands& w) {
  auto* trits = tape.allocate_scratch<std::int8_t>(w.outputs * w.inputs);
  parallel_pieces(w.outputs, 1, kDecodingTrit * w.inputs, [&](std::int64_t row, std::int64_t) {
    for_each_block(row, row + 1, w.inputs, [&](const Block& block) {
      decode_trits(w.weight->storage(), block, trits + row * w.inputs + block.col);
    });
  });
  return trits;
}

WindowPanels allocate_panels(Tape& tape, std::int64_t size, std::int64_t channels,
                             std::int64_t outputs) {
  WindowPanels panels{size, channels, outputs, nullptr};
  const std::int64_t count = (outputs + kPanelColumns - 1) / kPanelColumns * size;
  panels.bytes = tape.allocate_scratch<std::uint8_t>(count * panels.groups() * 4 * kPanelColumns);
  return panels;
}

// Calls body(first output, outputs, line) for all panels.
template <typename Body>
void for_each_panel(const WindowPanels& panels, const Body& body) {
  parallel_pieces((panels.outputs + kPanelColumns - 1) / kPanelColumns, 1,
                  kDecodingTrit * kPanelColumns * panels.size * panels.depth(),
                  [&](std::int64_t panel, std::int64_t) {
                    const std::int64_t first = panel * kPanelColumns;
                    const std::int64_t n = std::min(kPanelColumns, panels.outputs - first);
                    for (std::int64_t line = 0; line < panels.size; ++line) body(first, n, line);
                  });
}

}  // namespace

WindowPanels pack_windows(Tape& tape, const LinearOperands& w, std::int64_t size) {
  const std::int8_t* trits = decode_matrix(tape, w);
  const WindowPanels panels = allocate_panels(tape, size, w.inputs / (size * size), w.outputs);
  for_each_panel(panels, [&](std::int64_t first, std::int64_t n, std::int64_t line) {
    kernels().products.pack_across(panels.at(first, line),
                                   trits + first * w.inputs + line * panels.depth(), w.inputs,
                                   panels.depth(), n, 1);
  });
  return panels;
}

// The depth of a panel goes over the outputs of W at each pixel of a line of the window.
WindowPanels pack_mirrored_windows(Tape& tape, const LinearOperands& w, std::int64_t size) {
  const std::int8_t* trits = decode_matrix(tape, w);
  const std::int64_t channels = w.inputs / (size * size);
  const WindowPanels panels = allocate_panels(tape, size, w.outputs, channels);
  auto* columns =
      tape.allocate_scratch<std::int8_t>(panels.depth() * round_up(channels, kPanelColumns));
  for_each_panel(panels, [&](std::int64_t first, std::int64_t n, std::int64_t line) {
    std::int8_t* rows = columns + first * panels.depth();
    for (std::int64_t row = 0; row < panels.depth(); ++row) {
      const std::int64_t tap = (size - 1 - line) * size + size - 1 - row / w.outputs;
      std::copy_n(trits + row % w.outputs * w.inputs + tap * channels + first, n,
                  rows + row * kPanelColumns);
    }
    kernels().products.pack_down(panels.at(first, line), rows, kPanelColumns, panels.depth(), n, 1);
  });
  return panels;
}

}  // namespace tritgrad
