/* Made by make_weights.py. */

static const float FEATURES[4][6] = {
    {1, 0, 2, 0, 1, 0},
    {0, 1, 0, 1, 0, 1},
    {1, 1, 0, 0, 2, 0},
    {0, 2, 1, 1, 0, 1},
};

static const float QUERY_WEIGHT[3][6] = {
    {1, 0, -1, 0, 2, 0},
    {0, 1, 0, 1, 0, -1},
    {1, 1, 0, 0, -1, 0},
};

static const float KEY_WEIGHT[3][6] = {
    {0, 1, 0, -1, 0, 1},
    {1, 0, 1, 0, -1, 0},
    {0, 0, 1, 1, 0, 0},
};

static const float VALUE_WEIGHT[3][6] = {
    {2, 0, 0, 1, 0, 0},
    {0, 1, -1, 0, 1, 0},
    {1, 0, 0, 0, 0, 3},
};
