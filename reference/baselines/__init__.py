"""Public Gated DeltaNet implementations behind one signature, each in a file of its own.

    gdn_prefill_forward(q, k, v, raw_g, beta, initial_state) -> (output, final_state)

q, k: [B, T, Hq, 128] bfloat16, L2-normalised. v: [B, T, Hv, 128] bfloat16. raw_g, beta: [B, T, Hv]
float32, raw_g in log space. initial_state: [B, Hv, 128, 128] (K, V) float32 or None. output:
[B, T, Hv, 128] bfloat16; final_state: [B, Hv, 128, 128] float32.

That is scope `full_forward`. A file of scope `core` exports `prepare_arguments(k, raw_g, beta)`
too, which is not timed, and takes what that returns where a submission takes g_cumsum and A. The
files import nothing of each other, so that each can run alone in a process of its own.
"""
