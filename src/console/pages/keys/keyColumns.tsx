import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Share } from "../../components/Share.tsx"
import { Time } from "../../components/Values.tsx"
import { parseCredits, shareOfCredits, showCredits, textOfCredits } from "../../format/credits.ts"
import { isPast } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import type { ApiKey } from "./keyForm.ts"

const words = texts.keys

/** What the budget has left, and how much of it is used. */
const Budget = ({ held, remaining, reset, resets_at: resetsAt, spend_limit, spent }: ApiKey) => {
  // Without a limit all of them are null
  if (
    spend_limit === null ||
    reset === null ||
    spent === null ||
    held === null ||
    remaining === null
  ) {
    return <span class="faint">{words.noBudget}</span>
  }
  const used = textOfCredits(parseCredits(spent) + parseCredits(held))
  return (
    <>
      <span class={parseCredits(remaining) <= 0n ? "status bad" : undefined}>
        {words.remaining(showCredits(remaining))}
      </span>
      <Share
        name={words.used(showCredits(used), showCredits(spend_limit))}
        share={shareOfCredits(used, spend_limit)}
      />
      <span class="faint">
        {words.budgetOf(showCredits(spend_limit), words.resets[reset].toLowerCase())}
        {resetsAt !== null && (
          <>
            {", "}
            {words.resetsAt} <Time at={resetsAt} />
          </>
        )}
      </span>
    </>
  )
}

const Limits = ({ concurrent_tasks: tasks, rate_limit_per_minute: rate }: ApiKey) =>
  rate === null && tasks === null ? (
    <span class="faint">{words.noLimits}</span>
  ) : (
    <>
      {rate !== null && <div>{words.perMinute(rate)}</div>}
      {tasks !== null && <div>{words.atOnce(tasks)}</div>}
    </>
  )

const Models = ({ allowed_models: models }: ApiKey) =>
  models === null ? (
    <span class="faint">{words.allModels}</span>
  ) : (
    <span title={models.join("\n")}>
      {models.slice(0, 2).join(", ")}
      {models.length > 2 && ` ${words.andMore(models.length - 2)}`}
    </span>
  )

const Name = ({ id, name, old_key_expires_at: old, preview, scopes }: ApiKey) => (
  <>
    <strong>{name}</strong>
    <div>
      <code>{preview}</code>
    </div>
    <div class="faint">{scopes.map((it) => words.scopeShort[it]).join(", ")}</div>
    {old !== null && (
      <div class="status going">
        {words.oldUntil} <Time at={old} />
      </div>
    )}
    <Link to="/usage" query={{ api_key_id: id }}>
      {words.usage}
    </Link>
  </>
)

/** Times of a key that is used, and ends. */
const Life = ({ created_at: created, expires_at: expires, last_used_at: used }: ApiKey) => (
  <>
    <div>{used === null ? words.neverUsed : <Time at={used} />}</div>
    <div class="faint">
      {words.created} <Time at={created} />
    </div>
    {expires !== null && (
      <div class={isPast(expires) ? "status bad" : "faint"}>
        {words.expiresAt} <Time at={expires} />
      </div>
    )}
  </>
)

export const keyColumns: ReadonlyArray<Column<ApiKey>> = [
  { title: words.key, cell: (key) => <Name {...key} /> },
  { title: words.budgetTitle, cell: (key) => <Budget {...key} /> },
  { title: words.modelsTitle, cell: (key) => <Models {...key} /> },
  { title: words.limits, cell: (key) => <Limits {...key} /> },
  { title: words.lastUsed, cell: (key) => <Life {...key} /> }
]
