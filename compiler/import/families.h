/* families.h: every family's table. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "import.h"

extern const Family family_bert, family_roberta, family_distilbert, family_electra, family_albert, family_mpnet, family_modernbert; /* bert.c */
extern const Family family_vit, family_deit;                                                                                     /* vit.c */

#endif
