package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

func verify(header http.Header, body []byte, secret string) bool {
	id := header.Get("X-Service-Webhook-Id")
	timestamp := header.Get("X-Service-Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return false
	}
	if skew := time.Now().Unix() - seconds; skew > 300 || skew < -300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	expected := []byte("v1=" + hex.EncodeToString(mac.Sum(nil)))
	return hmac.Equal(expected, []byte(header.Get("X-Service-Webhook-Signature"))) ||
		hmac.Equal(expected, []byte(header.Get("X-Service-Webhook-Signature-Previous")))
}

func main() {
	secret := os.Getenv("WEBHOOK_SECRET")
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	var seen sync.Map // in production: a unique column in your database
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64*1024))
		if err != nil || !verify(r.Header, body, secret) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, duplicate := seen.LoadOrStore(r.Header.Get("X-Service-Webhook-Id"), true); !duplicate {
			var event struct{ Type string }
			if json.Unmarshal(body, &event) == nil {
				fmt.Println("received", event.Type)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(handler)))
}
