"""The forward of multi-head attention that writes the book."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tacit.errors import ParameterError
from tacit.learn.torch.book import Book
from tacit.learn.torch.layer_parameters import Forward
from tacit.learn.torch.linear_layers import call_linear
from tacit.learn.torch.offset_layers import call_offset


def build_attention(layer: str, module: nn.MultiheadAttention, book: Callable[[], Book]) -> Forward:
    """nn.MultiheadAttention: its projections as booked linear layers around the attention of torch."""
    if module.bias_k is not None or module.add_zero_attn:
        raise ParameterError(layer, "has add_bias_kv or add_zero_attn", fix="leave both out")
    own = type(module).forward
    size, heads = module.embed_dim, module.num_heads

    def project(module: Any, page: Book, queries: Tensor, keys: Tensor, values: Tensor) -> list[Tensor]:
        bias = module.in_proj_bias
        if module.in_proj_weight is None:
            matrices = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
            found = [
                call_linear(page, layer, x, matrix, None)
                for x, matrix in zip((queries, keys, values), matrices, strict=True)
            ]
            if bias is None:
                return found
            parts = [(n * size, (n + 1) * size) for n in range(3)]
            return [call_offset(page, layer, x, bias, rows) for x, rows in zip(found, parts, strict=True)]
        if queries is keys and keys is values:
            together = call_linear(page, layer, queries, module.in_proj_weight, bias)
            return list(together.chunk(3, -1))
        return [
            call_linear(page, layer, x, module.in_proj_weight, bias, rows=(n * size, (n + 1) * size))
            for n, x in enumerate((queries, keys, values))
        ]

    def forward(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        page = book()
        if not page.is_recording:
            return own(
                *(module, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
            )
        same = query is key and key is value
        if not module.batch_first:
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        q, k, v = project(module, page, query, key, value)
        rows, length = q.shape[0], q.shape[1]
        q, k, v = (x.reshape(rows, x.shape[1], heads, -1).transpose(1, 2) for x in (q, k, v))
        mask = _build_mask(attn_mask, key_padding_mask, rows, heads, q.dtype)
        causal = is_causal and mask is None
        drop = module.dropout if module.training else 0.0
        weights = None
        if need_weights:
            if is_causal and mask is None:
                hidden = torch.ones(length, k.shape[2], dtype=torch.bool, device=q.device).triu(1)
                mask = torch.zeros_like(hidden, dtype=q.dtype).masked_fill(hidden, -torch.inf)
            scores = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5)
            scores = scores if mask is None else scores + mask
            weights = F.dropout(scores.float().softmax(-1).to(q.dtype), drop)
            mixed = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, mask, drop, causal)
        out = module.out_proj(mixed.transpose(1, 2).reshape(rows, length, -1))
        return out if module.batch_first else out.transpose(0, 1), weights

    return forward


def _build_mask(
    attention: Tensor | None, padding: Tensor | None, rows: int, heads: int, dtype: torch.dtype
) -> Tensor | None:
    """Both masks as one of numbers that are added to the scores."""

    def to_numbers(mask: Tensor) -> Tensor:
        if mask.dtype == torch.bool:
            return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)
        return mask.to(dtype)

    found = None
    if attention is not None:
        found = to_numbers(attention)
        if found.dim() == 3:
            found = found.reshape(rows, heads, *found.shape[1:])
    if padding is not None:
        hidden = to_numbers(padding)[:, None, None, :]
        found = hidden if found is None else found + hidden
    return found
