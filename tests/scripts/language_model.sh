#!/usr/bin/env bash
# The way of docs/LANGUAGE.md in a small form: a text, tokens, training, generation, a GGUF file, and llama.cpp, which
# goes on with the same words as `tritgrad generate`. With bytes, and with SentencePiece's pieces where it is installed.
# What llama.cpp computes of the end of the text is compared, too: argmax on 15 of 16 positions, mean divergence 1e-3.
# Usage: language_model.sh TRITGRAD TRITGRAD_TRAINED_GGUF
# Exit status 77: npm has no node-llama-cpp.
set -euo pipefail
tritgrad=$(realpath -- "$1")
write_windows=$(realpath -- "$2")
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need "nodejs, npm" node npm
if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  echo "skipped: node-llama-cpp takes Node 20, and this is $(node --version)"
  exit 77
fi
readers=$(dirname -- "$tritgrad")/llama_cpp
install_with_npm "$here/readers/llama_cpp" "$readers" node-llama-cpp

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
sentences=("The union of these states is strong, and its people are free. "
  "We the people, in order to form a more perfect union, go on. "
  "It is the duty of the government to protect every citizen. ")
for ((i = 0; i < 400; ++i)); do printf '%s' "${sentences[i * i % 3]}${sentences[(i / 3) % 3]}"; done >text.txt
prompts=("The union " "We the people" "It is the duty of ")

# same_words NAME ARGUMENT...: trains with the arguments, and compares what both write.
same_words() {
  local name=$1
  shift
  "$tritgrad" train --data text:text.txt --recipe latent8-lm --save "$name.safetensors" --quiet "$@"
  "$tritgrad" export "$name.safetensors" --to "$name.gguf"
  for prompt in "${prompts[@]}"; do
    "$tritgrad" generate "$name.safetensors" --prompt "$prompt" --length "$length" --temperature 0 --quiet
  done | node -e 'for (const line of require("fs").readFileSync(0, "utf8").trimEnd().split("\n"))
                    console.log(JSON.stringify(line))' >ours
  node "$here/readers/continue_gguf.mjs" "$readers" "$name.gguf" "$context" "$length" "${prompts[@]}" >theirs
  diff ours theirs
  grep -q 'in order to form a more perfect union' ours # it has learnt something
  "$write_windows" "$name.safetensors" "$name.gguf" text.txt 4 "$name"
  node "$here/readers/read_gguf.mjs" "$readers" "$name"/*
  echo "$name: llama.cpp goes on with the same $length tokens of ${#prompts[@]} prompts"
}

length=64 context=128
same_words bytes --model "llama:2,256:heads=4:kv=2:ff=256:context=$context" --epochs 6
if command -v spm_train >/dev/null; then
  spm_train --model_type=bpe --byte_fallback=true --normalization_rule_name=identity --vocab_size=300 \
    --remove_extra_whitespaces=false --max_sentence_length=1000000 --input=text.txt --model_prefix=pieces \
    --minloglevel=2 >/dev/null
  length=48 context=64
  same_words pieces --tokens sentencepiece:pieces.model \
    --model "llama:2,256:heads=4:ff=256:context=$context:tie=yes" --epochs 10
fi
