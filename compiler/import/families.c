/* families.c: the list; each group of families has its file. */
#include "families.h"

const Family *const families[] = {
    &family_bert, &family_roberta, &family_distilbert, &family_electra, &family_albert, &family_mpnet, &family_modernbert,
    &family_vit, &family_deit,
    NULL,
};
