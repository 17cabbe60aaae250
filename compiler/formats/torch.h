/* torch.h: checkpoints of PyTorch (.bin, .pt, .pth). A checkpoint is a pickle that describes tensors, and the storages
 * with their numbers. */
#ifndef TORCH_H
#define TORCH_H

#include "../attnc.h"

bool torch_begins(MappedFile file); /* whether the file may be one: a zip archive, or such a pickle */
/* Reads the tensors of the dictionary that was saved. A tensor of a nested dictionary is named KEY.NAME, where KEY is
 * the key of that dictionary. Values that are neither tensors nor dictionaries are skipped. */
TensorFile torch_read(Arena *arena, MappedFile mapped);

#endif
