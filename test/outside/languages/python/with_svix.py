from svix.webhooks import Webhook, WebhookVerificationError

from deliveries import verifies
from world import shows

shows("svix")
verifies(lambda secret, body, headers: Webhook(secret).verify(body, headers), WebhookVerificationError)
