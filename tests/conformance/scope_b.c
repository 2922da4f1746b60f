/* scope_b.c: what scope_a.c finds. */
int scope_answer(void);
int scope_answer(void)
{
    return 'b';
}

int scope_only_b(void);
int scope_only_b(void)
{
    return 'B';
}
