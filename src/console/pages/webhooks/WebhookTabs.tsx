import { Link } from "../../components/Link.tsx"
import { location } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"

const tabs = [
  ["/webhooks", words.endpoints],
  ["/webhooks/deliveries", texts.pages.deliveries],
  ["/webhooks/signature", texts.pages.signature]
] as const

/** The tabs of the webhook pages. */
export const WebhookTabs = () => (
  <nav class="tabs" aria-label={words.tabs}>
    {tabs.map(([to, name]) => (
      <Link key={to} to={to} isCurrent={location.value.path === to}>
        {name}
      </Link>
    ))}
  </nav>
)
