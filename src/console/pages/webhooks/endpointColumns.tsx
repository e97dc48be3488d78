import { useEffect, useState } from "preact/hooks"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { showDuration } from "../../format/time.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import type { Endpoint } from "./endpointForm.ts"

const secondMillis = 1000

/** Counts down to the end of the old secret. */
const OldSecret = ({ until }: { readonly until: string }) => {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), secondMillis)
    return () => clearInterval(timer)
  }, [])
  const left = new Date(until).getTime() - now
  if (left <= 0) return null
  return (
    <div class="status going" title={until}>
      {words.oldSecret(showDuration(left))}
    </div>
  )
}

export const endpointColumns: ReadonlyArray<Column<Endpoint>> = [
  {
    title: words.url,
    cell: ({ description, id, url }) => (
      <>
        <strong class="address">{url}</strong>
        {description !== null && <div class="faint">{description}</div>}
        <Link to="/webhooks/deliveries" query={{ endpoint_id: id }}>
          {words.deliveries}
          <span class="hidden"> {url}</span>
        </Link>
      </>
    )
  },
  {
    title: words.events,
    cell: ({ events }) => events.map((it) => <div key={it}>{it}</div>)
  },
  {
    title: words.state,
    cell: ({ enabled }) => (
      <span class={enabled ? "status good" : "status bad"}>
        {enabled ? words.active : words.paused}
      </span>
    )
  },
  {
    title: words.secret,
    cell: ({ old_secret_expires_at: until, secret_preview: preview }) => (
      <>
        <code>{preview}</code>
        {until !== null && <OldSecret until={until} />}
      </>
    )
  }
]
