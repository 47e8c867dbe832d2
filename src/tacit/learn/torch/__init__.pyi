from tacit.learn.torch.accountant import TrainingGuarantee as TrainingGuarantee
from tacit.learn.torch.estimators import MLPClassifier as MLPClassifier
from tacit.learn.torch.estimators import MLPRegressor as MLPRegressor
from tacit.learn.torch.lora import add_lora as add_lora
from tacit.learn.torch.offset_layers import Offset as Offset
from tacit.learn.torch.private import Private as Private
