import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { createdColumn } from "../../components/list/createdColumn.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Ago } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
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
    isPlain: true,
    cell: ({ id, type }) => <Link to={`/webhooks/deliveries/${id}`}>{type}</Link>
  },
  {
    title: webhookTexts.state,
    isPlain: true,
    isLead: true,
    cell: ({ status }) => <DeliveryStatus of={status} />
  },
  {
    title: webhookTexts.endpoint,
    isPlain: true,
    isAbout: true,
    cell: ({ endpoint_id: id, webhook_url: url }) => (
      <span class="clip faint">{url ?? endpoints.get(id ?? "") ?? words.gone}</span>
    )
  },
  {
    title: words.attempts,
    isNumber: true,
    cell: ({ attempt_count: count }) => count
  },
  { title: words.next, isNumber: true, cell: ({ next_attempt_at: at }) => <Ago at={at} /> },
  createdColumn(words.created)
]

/** Resends an undelivered event from its row. */
export const resendColumn = (onResend: (delivery: Delivery) => void): Column<Delivery> => ({
  title: texts.actions,
  isEnd: true,
  cell: (delivery) =>
    delivery.status === "succeeded" || delivery.status === "delivering" ? null : (
      <button
        type="button"
        class="small"
        aria-label={words.resendOf(delivery.id)}
        onClick={() => onResend(delivery)}
      >
        {words.again}
      </button>
    )
})
