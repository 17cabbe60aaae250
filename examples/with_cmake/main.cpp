// nearest: which of some texts, here made of token ids, is nearest to the first one. The weights are mapped from their
// file; all texts are one call, whose work a thread pool shares.
#include "reader.h"

#include <attn_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int width = 32; // d_model of reader.attn

struct Weights {
    attn_file file{};

    explicit Weights(const std::string &path) {
        int error = attn_map_file(path.c_str(), &file);
        if (error) throw std::runtime_error(path + ": " + std::strerror(error));
    }
    Weights(const Weights &) = delete;
    Weights &operator=(const Weights &) = delete;
    ~Weights() { attn_close_file(&file); }
};

class Reader {
  public:
    explicit Reader(const std::string &path)
        : weights(path), pool(attn_pool_new(std::min(attn_cpu_count(), 4)), attn_pool_free) {
        reader_options options{};
        options.size = sizeof options, options.threads = attn_pool_threads(pool.get());
        options.parallel_for = attn_pool_run, options.pool = pool.get();
        check(reader_init(&model, weights.file.data, weights.file.size, &options));
        bytes = READER_WORKSPACE_BYTES(options.threads);
        workspace.reset(attn_alloc(bytes));
        if (!workspace) throw std::bad_alloc();
    }

    // [texts][width], each row of length 1.
    std::vector<float> vectors(const std::vector<std::vector<int32_t>> &texts) {
        std::vector<int32_t> lengths, tokens; // one text behind the other, without padding
        for (const auto &text : texts) {
            lengths.push_back(static_cast<int32_t>(text.size()));
            tokens.insert(tokens.end(), text.begin(), text.end());
        }
        std::vector<float> pooled(texts.size() * width);
        reader_input input{};
        input.size = sizeof input, input.batch = static_cast<int>(texts.size());
        input.lengths = lengths.data(), input.tokens = tokens.data();
        reader_output output{};
        output.size = sizeof output, output.pooled = pooled.data();
        check(reader_forward(&model, &input, &output, workspace.get(), bytes));
        return pooled;
    }

    const char *target() const { return reader_target(&model); }

  private:
    static void check(int status) {
        if (status) throw std::runtime_error(reader_status_text(status));
    }

    Weights weights;
    std::unique_ptr<attn_pool, decltype(&attn_pool_free)> pool;
    reader_ctx model{};
    std::unique_ptr<void, decltype(&attn_free)> workspace{nullptr, attn_free};
    size_t bytes = 0;
};

} // namespace

int main(int argc, char **argv) {
    const std::vector<std::vector<int32_t>> texts = {{7, 1, 4, 9}, {11, 12, 13}, {7, 1, 4, 8}, {150, 2, 5, 60, 61}};
    try {
        Reader reader(argc > 1 ? argv[1] : WEIGHTS_FILE);
        const auto vectors = reader.vectors(texts);
        std::size_t best = 1;
        float best_cosine = -2;
        for (std::size_t i = 1; i < texts.size(); i++) {
            float cosine = 0;
            for (std::size_t j = 0; j < width; j++) cosine += vectors[j] * vectors[i * width + j];
            std::printf("text %zu: %.4f\n", i, static_cast<double>(cosine));
            if (cosine > best_cosine) best = i, best_cosine = cosine;
        }
        std::printf("%s: text %zu is nearest to text 0\n", reader.target(), best);
    } catch (const std::exception &why) {
        std::fprintf(stderr, "nearest: %s\n", why.what());
        return 1;
    }
}
