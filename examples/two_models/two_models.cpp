// Two models in one program: embedder.attn gives a vector of each text, classifier.attn a class. Both contexts are
// shared by all threads; a thread brings only its workspaces. What each thread computes must have the bits that one
// thread alone gets, and the program ends with 1 if it has not.
//
//     two_models EMBEDDER.attnw [--threads N] [FILE]
//
// Exit status: 0; 1 after an error, a line that was refused or other bits; 2 for wrong usage.
#include "attn_runtime.h"
#include "classifier.h"
#include "embedder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t WIDTH = 32, CLASSES = 4; // of the two specs
constexpr std::size_t MOST_BYTES = std::min<std::size_t>(EMBEDDER_SEQ, CLASSIFIER_SEQ);
constexpr int MOST_THREADS = 64;

// A status of either model as an exception.
void check(const char *what, int status, const char *(*text_of)(int)) {
    if (status) throw std::runtime_error(std::string(what) + ": " + text_of(status));
}

// A file of weights, mapped as long as this lives; every process that maps it has the same memory.
class WeightsFile {
    attn_file file{};

public:
    explicit WeightsFile(const char *path) {
        if (int error = attn_map_file(path, &file))
            throw std::runtime_error(std::string(path) + ": " + std::strerror(error));
    }
    WeightsFile(const WeightsFile &) = delete;
    WeightsFile &operator=(const WeightsFile &) = delete;
    ~WeightsFile() { attn_close_file(&file); }
    const void *data() const { return file.data; }
    std::size_t size() const { return file.size; }
};

class Workspace {
    void *const memory;

public:
    const std::size_t bytes;

    explicit Workspace(std::size_t wanted) : memory(attn_alloc(wanted)), bytes(wanted) {
        if (!memory) throw std::bad_alloc();
    }
    Workspace(const Workspace &) = delete;
    Workspace &operator=(const Workspace &) = delete;
    ~Workspace() { attn_free(memory); }
    void *data() const { return memory; }
};

// Both models, read only once they are made. The embedder's weights are a file, the classifier's stand in its C.
class Models {
    WeightsFile weights;
    embedder_ctx embedder{};
    classifier_ctx classifier{};

public:
    explicit Models(const char *path) : weights(path) {
        check(path, embedder_init(&embedder, weights.data(), weights.size(), nullptr), embedder_status_text);
        check("classifier", classifier_init(&classifier, classifier_embedded(), CLASSIFIER_WEIGHTS_BYTES, nullptr),
              classifier_status_text);
    }
    const embedder_ctx *embed() const { return &embedder; }
    const classifier_ctx *classify() const { return &classifier; }
};

// A text's bytes, 1 to MOST_BYTES, as both models read them.
using Tokens = std::vector<std::int32_t>;

struct Result {
    std::array<float, WIDTH> vector{};
    std::array<float, CLASSES> logits{};

    bool same_bits(const Result &other) const {
        return std::memcmp(&vector, &other.vector, sizeof vector) == 0 &&
               std::memcmp(&logits, &other.logits, sizeof logits) == 0;
    }
};

// What one thread has of its own.
class Worker {
    const Models &models;
    Workspace embedding{EMBEDDER_WORKSPACE_BYTES(1)}, classifying{CLASSIFIER_WORKSPACE_BYTES(1)};

public:
    explicit Worker(const Models &shared) : models(shared) {}

    Result operator()(const Tokens &tokens) {
        Result result;
        const auto length = static_cast<std::int32_t>(tokens.size());

        embedder_input text{};
        text.size = sizeof text, text.batch = 1, text.lengths = &length, text.tokens = tokens.data();
        embedder_output vector{};
        vector.size = sizeof vector, vector.pooled = result.vector.data();
        check("embedder", embedder_forward(models.embed(), &text, &vector, embedding.data(), embedding.bytes),
              embedder_status_text);

        classifier_input same{};
        same.size = sizeof same, same.batch = 1, same.lengths = &length, same.tokens = tokens.data();
        classifier_output logits{};
        logits.size = sizeof logits, logits.logits = result.logits.data();
        check("classifier",
              classifier_forward(models.classify(), &same, &logits, classifying.data(), classifying.bytes),
              classifier_status_text);
        return result;
    }
};

// Threads that are joined even when the next one cannot be started.
class Threads {
    std::vector<std::thread> threads;

public:
    Threads() = default;
    Threads(const Threads &) = delete;
    Threads &operator=(const Threads &) = delete;
    ~Threads() {
        for (auto &thread : threads) thread.join();
    }
    template <typename Function> void start(Function function) { threads.emplace_back(std::move(function)); }
};

// Thread t has the texts t, t + count and so on; what it throws is thrown on in the caller.
std::vector<Result> run(const Models &models, const std::vector<Tokens> &texts, std::size_t count) {
    std::vector<Result> results(texts.size());
    std::vector<std::exception_ptr> thrown(count);
    {
        Threads threads;
        for (std::size_t t = 0; t < count; t++)
            threads.start([&, t] {
                try {
                    Worker worker(models);
                    for (std::size_t i = t; i < texts.size(); i += count) results[i] = worker(texts[i]);
                } catch (...) {
                    thrown[t] = std::current_exception();
                }
            });
    }
    for (auto &exception : thrown)
        if (exception) std::rethrow_exception(exception);
    return results;
}

// The other text of the largest product; `of` itself where there is no other.
std::size_t nearest(const std::vector<Result> &results, std::size_t of, float *product) {
    std::size_t best = of;
    for (std::size_t i = 0; i < results.size(); i++) {
        float sum = 0;
        for (std::size_t k = 0; k < WIDTH; k++) sum += results[of].vector[k] * results[i].vector[k];
        if (i != of && (best == of || sum > *product)) best = i, *product = sum;
    }
    return best;
}

// Lines of 1 to MOST_BYTES bytes, whatever bytes; the numbers of those lines go to `places`. False if one was refused.
bool read_texts(std::istream &in, std::vector<Tokens> *texts, std::vector<std::size_t> *places) {
    bool good = true;
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); number++) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty() || line.size() > MOST_BYTES) {
            std::fprintf(stderr, "two_models: line %zu: %zu bytes: a text has 1 to %zu\n", number, line.size(),
                         MOST_BYTES);
            good = false;
            continue;
        }
        Tokens tokens;
        for (char c : line) tokens.push_back(static_cast<unsigned char>(c));
        texts->push_back(std::move(tokens));
        places->push_back(number);
    }
    if (in.bad() || !in.eof()) throw std::runtime_error("the input cannot be read");
    return good;
}

// False where a text has other bits in `threads` threads than in `one`.
bool compare(const std::vector<Result> &one, const std::vector<Result> &many, const std::vector<std::size_t> &places,
             std::size_t threads) {
    for (std::size_t i = 0; i < one.size(); i++)
        if (!one[i].same_bits(many[i])) {
            std::fprintf(stderr, "two_models: line %zu has other bits in %zu threads\n", places[i], threads);
            return false;
        }
    return true;
}

int answer(const char *weights, std::size_t most_threads, std::istream &in) {
    const Models models(weights);
    std::vector<Tokens> texts;
    std::vector<std::size_t> places;
    const bool all_read = read_texts(in, &texts, &places);
    if (texts.empty()) throw std::runtime_error("no text to be read");

    const auto results = run(models, texts, 1);
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto &logits = results[i].logits;
        float product = 0;
        const std::size_t other = nearest(results, i, &product);
        std::printf("line %zu: class %d", places[i],
                    static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        if (other != i) std::printf(", nearest line %zu (%.4f)", places[other], static_cast<double>(product));
        std::puts("");
    }
    for (std::size_t threads = 2; threads <= most_threads; threads++)
        if (!compare(results, run(models, texts, threads), places, threads)) return 1;
    std::printf("%zu texts, embedder on %s, classifier on %s: the same bits in 1 to %zu threads\n", texts.size(),
                embedder_target(models.embed()), classifier_target(models.classify()), most_threads);
    return all_read ? 0 : 1;
}

int usage() {
    std::fprintf(stderr, "usage: two_models EMBEDDER.attnw [--threads 1..%d] [FILE]\n", MOST_THREADS);
    return 2;
}

} // namespace

int main(int argc, char **argv) try {
    const char *file = nullptr;
    int threads = 4, first = 2;
    if (argc < 2 || argv[1][0] == '-') return usage();
    if (argc > 3 && std::strcmp(argv[2], "--threads") == 0) {
        const char *end = argv[3] + std::strlen(argv[3]);
        const auto read = std::from_chars(argv[3], end, threads);
        if (read.ec != std::errc() || read.ptr != end || threads < 1 || threads > MOST_THREADS) return usage();
        first = 4;
    }
    if (argc > first) file = argv[first++];
    if (argc > first || (file && file[0] == '-')) return usage();

    std::ifstream opened;
    if (file) {
        opened.open(file, std::ios::binary);
        if (!opened) throw std::runtime_error(std::string(file) + ": cannot be opened");
    }
    return answer(argv[1], static_cast<std::size_t>(threads), file ? opened : std::cin);
} catch (const std::exception &why) {
    std::fprintf(stderr, "two_models: %s\n", why.what());
    return 1;
}
