"""ViT-B/16 on synthetic 224x224 images, AdamW: timm's where timm is installed, else torchvision's."""
import torch
import torch.nn.functional as F

import common

args = common.parse(batch=64, description=__doc__)
device = common.start(args)
side, classes, layers, heads, width = (64, 10, 2, 4, 64) if args.tiny else (224, 1000, 12, 12, 768)

try:
    from timm.models.vision_transformer import VisionTransformer
    source = "timm"
    model = VisionTransformer(img_size=side, patch_size=16, num_classes=classes, depth=layers, num_heads=heads,
                              embed_dim=width, proj_drop_rate=0.1).to(device)
    blocks = list(model.blocks)
except ImportError:
    from torchvision.models.vision_transformer import VisionTransformer
    source = "torchvision"
    model = VisionTransformer(image_size=side, patch_size=16, num_layers=layers, num_heads=heads, hidden_dim=width,
                              mlp_dim=4 * width, num_classes=classes, dropout=0.1).to(device)
    blocks = list(model.encoder.layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)


def make_batch(g):
    return (torch.randn(args.batch, 3, side, side, generator=g),
            torch.randint(classes, (args.batch,), generator=g))


def loss_of(model, images, labels):
    return F.cross_entropy(model(images), labels)


common.fit("vit_b_16-" + source, model, blocks, optimizer, loss_of, make_batch, args, device)
