from standardwebhooks import Webhook, WebhookVerificationError

from deliveries import verifies
from world import shows

shows("standardwebhooks")
verifies(lambda secret, body, headers: Webhook(secret).verify(body, headers), WebhookVerificationError)
