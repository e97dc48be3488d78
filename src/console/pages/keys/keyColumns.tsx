import { Share } from "../../components/chart/Share.tsx"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { RowMenu } from "../../components/list/RowMenu.tsx"
import { Ago, None } from "../../components/Values.tsx"
import { parseCredits, shareOfCredits, showCredits, textOfCredits } from "../../format/credits.ts"
import { isPast } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import { keyTexts } from "../../texts/en/keys.ts"
import { isConsoleKey } from "./keyForm.ts"
import type { ApiKey } from "./keyForm.ts"

const words = keyTexts

/** The rest of the budget, and the share used. */
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
    <div class="budget">
      <span class={parseCredits(remaining) <= 0n ? "status bad" : undefined}>
        {words.remaining(showCredits(remaining))}
      </span>{" "}
      <span class="faint">
        {words.budgetOf(showCredits(spend_limit))}
        {resetsAt !== null && (
          <>
            {" · "}
            {words.resetsAt} <Ago at={resetsAt} />
          </>
        )}
      </span>
      <Share
        name={words.used(showCredits(used), showCredits(spend_limit))}
        share={shareOfCredits(used, spend_limit)}
      />
    </div>
  )
}

/** Limits on requests, tasks and models on one line, without those that are not set. */
const Limits = (key: ApiKey) => {
  const { allowed_models: models, concurrent_tasks: tasks, rate_limit_per_minute: rate } = key
  const parts = [
    models === null ? "" : words.modelCount(models.length),
    rate === null ? "" : words.perMinute(rate),
    tasks === null ? "" : words.atOnce(tasks)
  ].filter(Boolean)
  return parts.length === 0 ? (
    <None />
  ) : (
    <span class="faint" title={models?.join("\n")}>
      {parts.join(" · ")}
    </span>
  )
}

const Name = (key: ApiKey) => {
  const { expires_at: expires, id, name, old_key_expires_at: old, preview, scopes } = key
  return (
    <>
      <Link to="/usage" query={{ api_key_id: id }}>
        {name}
      </Link>{" "}
      {!isConsoleKey(key) && <code class="faint">{preview}</code>}
      {scopes.includes("manage") && <span class="tagged">{words.scopeShort.manage}</span>}
      {old !== null && (
        <div class="second status going">
          {words.oldUntil} <Ago at={old} />
        </div>
      )}
      {expires !== null && (
        <div class={isPast(expires) ? "second status bad" : "second"}>
          {isPast(expires) ? words.expired : words.expires} <Ago at={expires} />
        </div>
      )}
    </>
  )
}

/** The actions on a key. */
export type KeyAction = "change" | "rotate" | "revoke"

export const keyColumns: ReadonlyArray<Column<ApiKey>> = [
  { title: words.key, isPlain: true, cell: (key) => <Name {...key} /> },
  { title: words.budgetTitle, isPlain: true, cell: (key) => <Budget {...key} /> },
  { title: words.limits, isPlain: true, cell: (key) => <Limits {...key} /> },
  {
    title: words.lastUsed,
    isNumber: true,
    cell: ({ created_at: created, last_used_at: used }) =>
      used === null ? (
        <span class="faint">
          {words.neverUsed} · {words.created} <Ago at={created} />
        </span>
      ) : (
        <Ago at={used} />
      )
  }
]

/** Nobody has the text of the console's own key, so it cannot be rotated. */
const actionsOf = (key: ApiKey): ReadonlyArray<KeyAction> =>
  isConsoleKey(key) ? ["change", "revoke"] : ["change", "rotate", "revoke"]

export const actionsColumn = (act: (what: KeyAction, key: ApiKey) => void): Column<ApiKey> => ({
  title: texts.actions,
  isEnd: true,
  cell: (key) => (
    <RowMenu
      of={key.name}
      actions={actionsOf(key).map((what) => ({
        label: words[what],
        name: texts.actionOn(words[what], key.name),
        isDangerous: what === "revoke",
        onAct: () => act(what, key)
      }))}
    />
  )
})
