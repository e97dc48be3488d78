import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Time } from "../../components/Values.tsx"
import { webhookTexts } from "../../texts/en/webhooks.ts"

type Delivery = Schemas["WebhookDelivery"]

const words = webhookTexts.delivery

const tones = {
  pending: "going",
  delivering: "going",
  succeeded: "good",
  failed: "bad",
  skipped: "bad"
} as const

export const DeliveryStatus = ({ of }: { readonly of: Delivery["status"] }) => (
  <span class={`status ${tones[of]}`}>{words.status[of]}</span>
)

export const deliveryColumns = (
  endpoints: ReadonlyMap<string, string>
): ReadonlyArray<Column<Delivery>> => [
  {
    title: words.event,
    cell: ({ id, type }) => <Link to={`/webhooks/deliveries/${id}`}>{type}</Link>
  },
  {
    title: words.endpoint,
    cell: ({ endpoint_id: id, webhook_url: url }) =>
      url ?? endpoints.get(id) ?? <span class="faint">{id}</span>
  },
  {
    title: webhookTexts.state,
    cell: ({ status }) => <DeliveryStatus of={status} />
  },
  {
    title: words.attempts,
    isNumber: true,
    cell: ({ attempt_count: count }) => count
  },
  { title: words.created, cell: ({ created_at: at }) => <Time at={at} /> },
  { title: words.next, cell: ({ next_attempt_at: at }) => <Time at={at} /> }
]
