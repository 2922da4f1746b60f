"""BERT-base for masked words, from its configuration (random weights, nothing downloaded), AdamW."""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import BertConfig, BertForMaskedLM

import common

args = common.parse(batch=32, description=__doc__)
device = common.start(args)
length = 64 if args.tiny else 128
config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                    vocab_size=211) if args.tiny else BertConfig()

model = BertForMaskedLM(config).to(device).train()
blocks = list(model.bert.encoder.layer)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)


def make_batch(g):
    words = torch.randint(config.vocab_size, (args.batch, length), generator=g)
    masked = torch.rand(words.shape, generator=g) < 0.15
    labels = words.masked_fill(~masked, -100)
    return words.masked_fill(masked, 103), labels


def loss_of(model, words, labels):
    return model(input_ids=words, labels=labels).loss


common.fit("bert_base", model, blocks, optimizer, loss_of, make_batch, args, device)
