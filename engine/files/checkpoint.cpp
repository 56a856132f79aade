#include "engine/files/checkpoint.h"

#include <set>

#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"
#include "engine/files/safetensors.h"

namespace tritgrad {
namespace {

std::vector<std::uint64_t> extents(const Shape& shape) {
  std::vector<std::uint64_t> result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result.push_back(static_cast<std::uint64_t>(shape[axis]));
  }
  return result;
}

// A plane has the parameter's shape where it holds one item per element, else rows of packed items,
// or rows of its own.
Shape plane_shape(const Shape& parameter, const PlaneSpec& plane) {
  const std::int64_t count = plane.count;
  if (count == parameter.size()) return parameter;
  if (plane.rows > 0) return {plane.rows, count / plane.rows};
  if (count > 1 && count % parameter.rows() == 0)
    return {parameter.rows(), count / parameter.rows()};
  return {count};
}

std::string text_of(Dtype dtype, const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t extent : shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  }
  return concat(dtype_name(dtype), " [", text, "]");
}

// Planes of the same shape whose type differs are what a changed layout looks like.
const StoredTensor& matching(const SafetensorsFile& file, const NamedArray& plane) {
  const StoredTensor* tensor = file.find(plane.name);
  check(tensor != nullptr, "checkpoint '", file.name(), "' has no tensor '", plane.name,
        "'; it belongs to another model or recipe");
  const bool same_shape = tensor->shape == extents(plane.shape);
  check(same_shape && tensor->dtype == plane.dtype && tensor->bytes.size() == plane.bytes.size(),
        "checkpoint '", file.name(), "': tensor '", plane.name, "' is ",
        text_of(tensor->dtype, tensor->shape), ", expected ",
        text_of(plane.dtype, extents(plane.shape)),
        same_shape ? "; another version of tritgrad may have written the file, use that one or "
                     "train anew"
                   : "; it belongs to another model or recipe");
  return *tensor;
}

}  // namespace

std::vector<NamedArray> parameter_planes(const ParameterStore& store) {
  std::vector<NamedArray> planes;
  for (const Parameter& parameter : store) {
    for (const Plane& plane : parameter.storage().planes()) {
      planes.push_back({parameter.name() + "/" + plane.spec.name, plane.spec.dtype,
                        plane_shape(parameter.shape(), plane.spec), plane.bytes, plane.order});
    }
  }
  return planes;
}

std::string weights_sha256(const ParameterStore& store) {
  return planes_sha256(parameter_planes(store));
}

std::string planes_sha256(const std::vector<NamedArray>& planes) {
  Sha256 hash;
  for (const NamedArray& plane : planes) {
    hash.update(std::as_bytes(std::span(plane.name)));
    plane.order.for_each_piece(plane.bytes,
                               [&](std::span<const std::byte> piece) { hash.update(piece); });
  }
  return hash.finish();
}

void write_checkpoint(const ByteSink& write, const Metadata& metadata,
                      const std::vector<NamedArray>& planes, const std::string& name) {
  std::vector<StoredTensor> tensors;
  for (const NamedArray& plane : planes) {
    tensors.push_back({plane.name, plane.dtype, extents(plane.shape), plane.bytes, plane.order});
  }
  write_safetensors(write, tensors, metadata, name);
}

void save_checkpoint(const std::string& path, const Metadata& metadata,
                     const std::vector<NamedArray>& planes) {
  AtomicFile file(path);
  write_checkpoint([&](std::span<const std::byte> piece) { file.write(piece); }, metadata, planes,
                   file.path().string());
  file.commit();
}

namespace {

// Returns what `read` returns. For what is wrong in the bytes there is one remedy, whichever part
// of them shows it.
template <typename Read>
SafetensorsFile verified(const Read& read) {
  SafetensorsFile file;
  try {
    file = read();
    check(file.has_hashes(), "checkpoint '", file.name(),
          "' carries no hashes, so it was not written by tritgrad and cannot be verified");
  } catch (const Error& error) {
    fail_again(error, "",
               "; it is no checkpoint, or a damaged one: restore it from a copy, or name a file "
               "that --save wrote");
  }
  check(!file.metadata().contains(kExportKey), "checkpoint '", file.name(),
        "': this is an export, which other programs read, and no checkpoint; name the file that it "
        "was exported from");
  return file;
}

}  // namespace

SafetensorsFile open_checkpoint(const std::string& path) {
  const MappedFile readable(path);  // or else the path is wrong, which is said without that remedy
  return verified([&] { return SafetensorsFile::open(path); });
}

SafetensorsFile parse_checkpoint(std::span<const std::byte> bytes, const std::string& name) {
  return verified([&] { return SafetensorsFile::parse(bytes, name); });
}

void load_checkpoint(const SafetensorsFile& file, const std::vector<NamedArray>& planes) {
  std::set<std::string> expected;
  for (const NamedArray& plane : planes) expected.insert(plane.name);
  for (const StoredTensor& tensor : file.tensors()) {
    check(expected.contains(tensor.name), "checkpoint '", file.name(), "' has a tensor '",
          tensor.name, "' that is not expected; it belongs to another model or recipe");
  }
  load_planes(file, planes);
}

void load_planes(const SafetensorsFile& file, const std::vector<NamedArray>& planes) {
  for (const NamedArray& plane : planes) matching(file, plane);
  for (const NamedArray& plane : planes) {
    plane.order.copy_from_file(plane.bytes, matching(file, plane).bytes);
  }
}

}  // namespace tritgrad
