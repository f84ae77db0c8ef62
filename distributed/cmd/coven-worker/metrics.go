package main

import (
	"context"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// metrics returns the handler of the SDK's metrics, and a function that sends the last ones. Without an endpoint in the environment there is none. The
// variables are those of OpenTelemetry.
func metrics(ctx context.Context) (client.MetricsHandler, func(context.Context) error, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter)))
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: provider.Meter("coven-worker")}), provider.Shutdown, nil
}
