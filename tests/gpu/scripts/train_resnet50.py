"""ResNet-50 on synthetic 224x224 images, SGD with momentum."""
import torch
import torch.nn.functional as F
import torchvision

import common

args = common.parse(batch=64, description=__doc__)
device = common.start(args)
side, classes = (64, 10) if args.tiny else (224, 1000)

model = torchvision.models.resnet50(num_classes=classes).to(device)
blocks = [b for stage in (model.layer1, model.layer2, model.layer3, model.layer4) for b in stage]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def make_batch(g):
    return (torch.randn(args.batch, 3, side, side, generator=g),
            torch.randint(classes, (args.batch,), generator=g))


def loss_of(model, images, labels):
    return F.cross_entropy(model(images), labels)


common.fit("resnet50", model, blocks, optimizer, loss_of, make_batch, args, device)
