/* torch.h: checkpoints of PyTorch (.bin, .pt, .pth), which are pickles with the numbers of tensors beside them. */
#ifndef TORCH_H
#define TORCH_H

#include "../attnc.h"

bool torch_begins(MappedFile file); /* whether the file may be one: a zip archive, or such a pickle */
/* The tensors of the dictionary that was saved. Dictionaries inside of it put their key and a dot before the names;
 * other values are skipped. */
TensorFile torch_read(Arena *arena, MappedFile mapped);

#endif
