/* tensors.c: reads the tensors of a file that was accepted, and checks what formats/ promises of them. */
#include "target.h"

#include "../../../compiler/formats/blocks.h"
#include "../../../compiler/formats/coded.h"

enum { MOST_READ = 300 };

void tensors_read(const TensorFile *file) {
    for (size_t i = 0; i < file->count; i++) {
        const FileTensor *tensor = &file->tensors[i];
        if (tensor->unread) continue;
        const size_t elements = tensor->blocks ? (size_t)tensor->blocks->elements : 1,
                     bytes = tensor->blocks ? (size_t)tensor->blocks->bytes : dtype_bytes(tensor->dtype);
        int64_t count;
        float values[MOST_READ];
        if (tensor_find(file, tensor->name) != tensor) broken("a tensor is not found by its name");
        if (!shape_elements(tensor->shape, &count)) broken("the size of a tensor overflows");
        const bool sized = tensor->coded ? tensor->coded->rows * tensor->coded->columns == count
            : (size_t)count / elements * bytes == tensor->bytes;
        if (!sized) broken("a tensor's size is not its shape's");
        if (tensor->coded) tensor_to_f32(tensor, 0, count < MOST_READ ? count : MOST_READ, values);
        int64_t first = count > MOST_READ ? count - MOST_READ : 0;
        if (count) tensor_to_f32(tensor, first, count - first, values);
    }
}
