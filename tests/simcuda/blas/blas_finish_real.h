/*
 * The end of a matmul for accumulators of type REAL: included once for each, with REAL, TANH, FINISH (the function's name),
 * LOAD and STORE (elements of a cudaDataType to REAL and back) defined; undefines them.
 */
static REAL NAMED(gelu)(REAL x)
{
    const REAL s = (REAL)0.79788456080286535588; /* sqrt(2 / pi) */
    return (REAL)0.5 * x * (1 + TANH(s * (x + (REAL)0.044715 * x * x * x)));
}

static REAL NAMED(gelu_slope)(REAL x)
{
    const REAL s = (REAL)0.79788456080286535588;
    REAL t = TANH(s * (x + (REAL)0.044715 * x * x * x));
    return (REAL)0.5 * (1 + t) + (REAL)0.5 * x * (1 - t * t) * s * (1 + (REAL)0.134145 * x * x);
}

/* One column of the epilogue, v in place. mask: bits of ReLU's mask for this column; aux: what GELU keeps of it. */
static void NAMED(activate)(int epilogue, REAL *v, int m, unsigned char *mask, REAL *aux)
{
    if (epilogue & LT_EPILOGUE_RELU)
        for (int r = 0; r < m; r++) {
            if (mask && v[r] > 0)
                mask[r / 8] |= (unsigned char)(1u << (r % 8));
            v[r] = v[r] > 0 || v[r] != v[r] ? v[r] : 0;
        }
    if (epilogue & LT_EPILOGUE_GELU)
        for (int r = 0; r < m; r++) {
            if (aux)
                aux[r] = v[r];
            v[r] = NAMED(gelu)(v[r]);
        }
    if (epilogue & LT_EPILOGUE_DRELU)
        for (int r = 0; r < m; r++)
            v[r] = mask[r / 8] >> (r % 8) & 1 ? v[r] : 0;
    if (epilogue & LT_EPILOGUE_DGELU)
        for (int r = 0; r < m; r++)
            v[r] *= NAMED(gelu_slope)(aux[r]);
}

/* Sums over k of op(a)'s rows, or op(b)'s columns: `count` of them. */
static void NAMED(operand_sums)(const struct blas_gemm_params *p, int i, const struct blas_matrix *x, int count, REAL *sums)
{
    const char *at = blas_matrix_at(p, x, i);
    int k_is_column = (x == &p->a) == (x->op == CUBLAS_OP_N);
    size_t element = blas_type_bytes(x->type);
    int64_t along = k_is_column ? x->ld : 1, across = k_is_column ? 1 : x->ld;

    for (int r = 0; r < count; r++) {
        sums[r] = 0;
        for (int64_t k = 0; k < p->k; k++) {
            REAL e;
            LOAD(x->type, at + (size_t)(k * along + r * across) * element, &e, 1);
            sums[r] += e;
        }
    }
}

void FINISH(const struct blas_gemm_params *p, int i, const REAL *sum, int64_t ld, int scaled)
{
    size_t m = (size_t)p->m, element = blas_type_bytes(p->d.type), bias_element = blas_type_bytes(p->bias_type);
    char *d = blas_matrix_at(p, &p->d, i), *c = blas_matrix_at(p, &p->c, i);
    char *bias_at = (char *)(uintptr_t)p->bias + (size_t)(i * p->bias_stride) * bias_element;
    int epilogue = p->epilogue, with_mask = epilogue & (LT_EPILOGUE_RELU | LT_EPILOGUE_DRELU);
    int with_aux = epilogue & LT_EPILOGUE_AUX, summed = epilogue & LT_EPILOGUE_BGRAD;
    int operand = epilogue & (LT_EPILOGUE_BGRADA | LT_EPILOGUE_BGRADB);
    size_t aux_element = blas_type_bytes(p->aux_type);
    REAL *v = malloc(m * 4 * sizeof *v), *bias = v + m, *other = v + 2 * m, *slope = v + 3 * m;
    double alpha[2], beta[2];

    blas_factor(p->alpha_at, p->alpha, p->scale_type, alpha);
    blas_factor(p->beta_at, p->beta, p->scale_type, beta);
    if (epilogue & LT_EPILOGUE_BIAS)
        LOAD(p->bias_type, bias_at, bias, m);
    memset(slope, 0, m * sizeof *slope);
    for (int64_t j = 0; j < p->n; j++) {
        char *aux_at = (char *)(uintptr_t)p->aux;
        memcpy(v, sum + j * ld, m * sizeof *v);
        if (!scaled && alpha[0] != 1)
            for (size_t r = 0; r < m; r++)
                v[r] *= (REAL)alpha[0];
        if (!scaled && beta[0] != 0) {
            LOAD(p->c.type, c + (size_t)(j * p->c.ld) * element, other, m);
            for (size_t r = 0; r < m; r++)
                v[r] += (REAL)beta[0] * other[r];
        }
        if (epilogue & LT_EPILOGUE_BIAS)
            for (size_t r = 0; r < m; r++)
                v[r] += bias[r];
        if (with_aux)
            aux_at += with_mask ? (size_t)(i * p->aux_stride + j * p->aux_ld) / 8
                                : (size_t)(i * p->aux_stride + j * p->aux_ld) * aux_element;
        if (with_aux && (epilogue & LT_EPILOGUE_RELU))
            memset(aux_at, 0, (m + 7) / 8);
        if (with_aux && (epilogue & LT_EPILOGUE_DGELU))
            LOAD(p->aux_type, aux_at, other, m);
        NAMED(activate)(epilogue, v, p->m, with_aux && with_mask ? (unsigned char *)aux_at : NULL, with_aux ? other : NULL);
        if (with_aux && (epilogue & LT_EPILOGUE_GELU))
            STORE(p->aux_type, other, aux_at, m);
        STORE(p->d.type, v, d + (size_t)(j * p->d.ld) * element, m);
        if (summed)
            for (size_t r = 0; r < m; r++)
                slope[r] += v[r];
    }
    if (summed)
        STORE(p->bias_type, slope, bias_at, m);
    free(v);
    if (operand) {
        int is_a = epilogue & LT_EPILOGUE_BGRADA, count = is_a ? p->m : p->n;
        REAL *sums = malloc((size_t)count * sizeof *sums);
        NAMED(operand_sums)(p, i, is_a ? &p->a : &p->b, count, sums);
        STORE(p->bias_type, sums, bias_at, (size_t)count);
        free(sums);
    }
}

#undef REAL
#undef TANH
#undef FINISH
#undef LOAD
#undef STORE
#undef NAMED
