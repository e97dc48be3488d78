// A task in River: one job submits, is snoozed, and polls when it runs again.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// Tasks that are worked on at once.
const concurrency = 64
const pollInterval = 2500 * time.Millisecond

var vendor, folder = os.Getenv("VENDOR_URL"), os.Getenv("DATA_DIR")
var vendorClient = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}

func call(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("authorization", "Key a:b")
	request.Header.Set("content-type", "application/json")
	response, err := vendorClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: HTTP %d", url, response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

func get[A any](ctx context.Context, url string) (answer A, err error) {
	text, err := call(ctx, http.MethodGet, url, nil)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

type Handle struct {
	StatusURL   string `json:"status_url"`
	ResponseURL string `json:"response_url"`
}

type TaskArgs struct {
	ID string `json:"id"`
}

func (TaskArgs) Kind() string { return "task" }

type TaskWorker struct {
	river.WorkerDefaults[TaskArgs]
	pool *pgxpool.Pool
}

// Work submits a task without a handle, and polls one that has it.
func (w *TaskWorker) Work(ctx context.Context, job *river.Job[TaskArgs]) error {
	var prompt string
	var handle *Handle
	row := w.pool.QueryRow(ctx, "SELECT prompt, handle FROM tasks WHERE id = $1", job.Args.ID)
	if err := row.Scan(&prompt, &handle); err != nil {
		return err
	}
	if handle == nil {
		body, err := json.Marshal(map[string]string{"prompt": prompt})
		if err != nil {
			return err
		}
		answer, err := call(ctx, http.MethodPost, vendor+"/fal-ai/bench", body)
		if err != nil {
			return err
		}
		if _, err := w.pool.Exec(ctx,
			"UPDATE tasks SET status = 'processing', handle = $2, updated_at = now() WHERE id = $1",
			job.Args.ID, answer); err != nil {
			return err
		}
		return river.JobSnooze(pollInterval)
	}
	status, err := get[struct{ Status string }](ctx, handle.StatusURL)
	if err != nil {
		return err
	}
	if status.Status != "COMPLETED" {
		return river.JobSnooze(pollInterval)
	}
	if err := storePicture(ctx, job.Args.ID, handle.ResponseURL); err != nil {
		return err
	}
	// The task and its job end together
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx,
			"UPDATE tasks SET status = 'completed', updated_at = now() WHERE id = $1", job.Args.ID); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

func storePicture(ctx context.Context, id, url string) error {
	result, err := get[struct{ Images []struct{ URL string } }](ctx, url)
	if err != nil {
		return err
	}
	picture, err := call(ctx, http.MethodGet, result.Images[0].URL, nil)
	if err != nil {
		return err
	}
	part := filepath.Join(folder, id+".part")
	file, err := os.Create(part)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(picture); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(folder, id+".png"))
}

func run(ctx context.Context) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	settings, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	settings.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &TaskWorker{pool: pool})
	client, err := river.NewClient(driver, &river.Config{
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	http.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /tasks", func(response http.ResponseWriter, request *http.Request) {
		var task struct{ Prompt string }
		err := json.NewDecoder(request.Body).Decode(&task)
		if err == nil {
			err = pgx.BeginFunc(request.Context(), pool, func(tx pgx.Tx) error {
				var id string
				row := tx.QueryRow(request.Context(),
					"INSERT INTO tasks (prompt) VALUES ($1) RETURNING id::text", task.Prompt)
				if err := row.Scan(&id); err != nil {
					return err
				}
				_, err := client.InsertTx(request.Context(), tx, TaskArgs{ID: id}, nil)
				return err
			})
		}
		if err != nil {
			http.Error(response, err.Error(), http.StatusInternalServerError)
			return
		}
		response.WriteHeader(http.StatusAccepted)
	})
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("River", "error", err)
		os.Exit(1)
	}
}
